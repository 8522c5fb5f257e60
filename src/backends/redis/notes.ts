// Small keyed records with compare-and-set and expiry, in one slot of a Cluster. Versions come from one counter, so
// none is used twice.
import { MillraceError } from '../../core/errors.ts'
import { LIMITS } from '../../core/limits.ts'
import type { Note, NoteStore } from '../../store/note-store.ts'
import type { RedisValue } from './link.ts'
import { scriptOf } from './store.ts'
import type { RedisStore, ScriptName } from './store.ts'

export function redisNotes(store: RedisStore): NoteStore {
  const { link, keys } = store
  const prepare = (what: string, name: ScriptName) => {
    const one = scriptOf(store, what, name)
    return (...args: readonly RedisValue[]) => link.run(one, [keys.notes('version')], [keys.prefix, ...args])
  }
  const get = prepare('notes.get', 'noteGet')
  const put = prepare('notes.put', 'notePut')
  const increment = prepare('notes.increment', 'noteIncrement')
  const remove = prepare('notes.remove', 'noteRemove')
  const list = prepare('notes.list', 'noteList')
  const prune = prepare('notes.prune', 'notePrune')

  return {
    async get(space, key) {
      const row = (await get(space, key)) as readonly string[] | null // as the script answers
      return row === null ? null : parseNotes(row)[0]!
    },
    async put({ space, key, value, expectVersion, ttlMs }) {
      const ttl = ttlMs === undefined ? '' : Math.ceil(ttlMs)
      return (await put(space, key, value, expectVersion ?? '', ttl)) as number | null // as the script answers
    },
    async increment(space, key, by) {
      const sum = await increment(space, key, by)
      if (sum !== null) return Number(sum)
      throw new MillraceError('INVALID_OPTION', `note '${key}' in '${space}' is not a number and cannot be incremented`)
    },
    async remove(space, key) {
      return (await remove(space, key)) === 1
    },
    async list(space, limit, cursor) {
      const notes: Note[] = []
      let from = cursor ?? ''
      // Each turn looks at `limit` keys; only those that have expired and were not pruned yet make a second one needed.
      do {
        const [next = '', ...rows] = (await list(space, limit, from)) as readonly string[] // as the script answers
        notes.push(...parseNotes(rows))
        from = next
      } while (from !== '' && notes.length < limit)
      return notes.slice(0, limit)
    },
    async prune(limit) {
      return Number(await prune(Math.min(limit, LIMITS.maintenanceBatchMax)))
    },
  }
}

/** Rows of four: key, version, expiry (0: it stays), value. */
function parseNotes(row: readonly string[]): readonly Note[] {
  const notes: Note[] = []
  for (let at = 0; at < row.length; at += 4) {
    const expiresAtMs = Number(row[at + 2])
    notes.push({
      key: row[at] ?? '',
      version: Number(row[at + 1]),
      expiresAtMs: expiresAtMs === 0 ? null : expiresAtMs,
      value: row[at + 3] ?? 'null',
    })
  }
  return notes
}
