// Keyed records of the memory backend, with compare-and-set and expiry.
import { MillraceError } from '../../core/errors.ts'
import type { Note, NoteStore, NoteWrite } from '../../store/note-store.ts'
import type { World } from './world.ts'

export function memoryNotes(world: World): NoteStore {
  return {
    get: (space, key) => world.run(() => find(world, space, key)),
    put: (write) => world.run(() => put(world, write)),
    increment: (space, key, by) => world.run(() => increment(world, space, key, by)),
    remove: (space, key) =>
      world.run(() => {
        const found = find(world, space, key) !== null
        world.notes.get(space)?.delete(key)
        return found
      }),
    list: (space, limit, cursor) =>
      world.run(() => {
        const keys = [...(world.notes.get(space)?.keys() ?? [])]
          .filter((key) => cursor === undefined || key > cursor)
          .sort()
        const notes = keys.map((key) => find(world, space, key)).filter((note) => note !== null)
        return notes.slice(0, limit)
      }),
    prune: (limit) => world.run(() => prune(world, limit)),
  }
}

function find(world: World, space: string, key: string): Note | null {
  const note = world.notes.get(space)?.get(key)
  return note === undefined || isExpired(note, world.nowMs()) ? null : note
}

function isExpired(note: Note, nowMs: number): boolean {
  return note.expiresAtMs !== null && note.expiresAtMs <= nowMs
}

function put(world: World, { space, key, value, expectVersion, ttlMs }: NoteWrite): number | null {
  const found = find(world, space, key)
  if (expectVersion !== undefined && expectVersion !== (found?.version ?? 0)) return null
  const version = ++world.lastNoteVersion
  write(world, space, { key, value, version, expiresAtMs: ttlMs === undefined ? null : world.nowMs() + ttlMs })
  return version
}

function increment(world: World, space: string, key: string, by: number): number {
  const found = find(world, space, key)
  const before: unknown = found === null ? 0 : JSON.parse(found.value)
  if (typeof before !== 'number') {
    throw new MillraceError('INVALID_OPTION', `note '${key}' in '${space}' is not a number and cannot be incremented`)
  }
  const sum = before + by
  const version = ++world.lastNoteVersion
  write(world, space, { key, value: JSON.stringify(sum), version, expiresAtMs: found?.expiresAtMs ?? null })
  return sum
}

function write(world: World, space: string, note: Note): void {
  let notes = world.notes.get(space)
  if (notes === undefined) world.notes.set(space, (notes = new Map()))
  notes.set(note.key, note)
}

function prune(world: World, limit: number): number {
  const nowMs = world.nowMs()
  let pruned = 0
  for (const notes of world.notes.values()) {
    for (const note of notes.values()) {
      if (pruned >= limit) return pruned
      if (isExpired(note, nowMs) && notes.delete(note.key)) pruned += 1
    }
  }
  return pruned
}
