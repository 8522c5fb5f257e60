// Small keyed records with compare-and-set and expiry. Versions come from one sequence, so none is used twice.
import { MillraceError } from '../../core/errors.ts'
import type { Note, NoteStore } from '../../store/note-store.ts'
import { prepared } from './store.ts'
import type { PostgresStore } from './store.ts'
import { isAbsent, msOf } from './row.ts'
import type { Row } from './row.ts'

const LIVE = '(n.expires_at is null or n.expires_at > millrace.now_at())'
const COLUMNS = 'n.key, n.value::text, n.version, millrace.ms_of(n.expires_at)'

export function postgresNotes(store: PostgresStore): NoteStore {
  const get = prepared(
    store,
    'notes.get',
    `select ${COLUMNS} from millrace.notes n where n.space = $1 and n.key = $2 and ${LIVE}`,
  )
  const put = prepared(store, 'notes.put', 'select millrace.put_note($1, $2, $3, $4, $5)')
  const increment = prepared(store, 'notes.increment', 'select millrace.increment_note($1, $2, $3)')
  const remove = prepared(
    store,
    'notes.remove',
    `with gone as (delete from millrace.notes n where n.space = $1 and n.key = $2 returning ${LIVE} as live) select live from gone`,
  )
  const list = prepared(
    store,
    'notes.list',
    `select ${COLUMNS} from millrace.notes n where n.space = $1 and ($2::text is null or n.key collate "C" > $2) and ${LIVE}
     order by n.key collate "C" limit $3`,
  )
  const prune = prepared(
    store,
    'notes.prune',
    // The array is made once; a subquery with a limit may be run again for every row, and takes more each time.
    `with gone as (
       delete from millrace.notes where ctid = any(array(
         select ctid from millrace.notes where expires_at <= millrace.now_at() limit $1 for update skip locked)) returning 1)
     select count(*) from gone`,
  )

  return {
    async get(space, key) {
      const [row] = await get(space, key)
      return row === undefined ? null : parseNote(row)
    },
    async put({ space, key, value, expectVersion, ttlMs }) {
      const [row] = await put(space, key, value, expectVersion ?? null, ttlMs === undefined ? null : Math.ceil(ttlMs))
      return isAbsent(row?.[0]) ? null : Number(row[0])
    },
    async increment(space, key, by) {
      const [row] = await increment(space, key, by)
      if (!isAbsent(row?.[0])) return Number(row[0])
      throw new MillraceError('INVALID_OPTION', `note '${key}' in '${space}' is not a number and cannot be incremented`)
    },
    async remove(space, key) {
      const [row] = await remove(space, key)
      return row?.[0] === 't'
    },
    async list(space, limit, cursor) {
      return (await list(space, cursor ?? null, limit)).map(parseNote)
    },
    async prune(limit) {
      const [row] = await prune(limit)
      return Number(row?.[0] ?? 0)
    },
  }
}

function parseNote(row: Row): Note {
  return { key: row[0] ?? '', value: row[1] ?? 'null', version: Number(row[2]), expiresAtMs: msOf(row[3]) }
}
