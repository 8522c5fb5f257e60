// Small values kept for a job kind across its runs: notes in a space of their own.
import type { KindMetadata } from '../core/definition.ts'
import type { Json } from '../core/json.ts'
import { LIMITS } from '../core/limits.ts'
import { checkInteger, checkKey } from '../core/names.ts'
import { decodePayload, encodePayload } from '../core/payload.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { NoteStore } from '../store/note-store.ts'
import { retryStore } from './store-retry.ts'

const PAGE = 200
/** `entries()` is for a handful of values; beyond this it stops. */
const ENTRIES_MAX = 1_000

export function createMetadata(notes: NoteStore, runtime: Runtime, jobName: string): KindMetadata {
  const space = `meta:${jobName}`
  const limit = { maxBytes: LIMITS.noteBytesMax, code: 'PAYLOAD_TOO_LARGE' } as const
  return {
    async get(key) {
      checkKey(key, 'metadata key')
      const note = await retryStore(runtime, () => notes.get(space, key))
      return note && decodePayload(note.value)
    },
    async set(key, value) {
      checkKey(key, 'metadata key')
      const { text } = encodePayload(value, 'metadata', limit)
      await retryStore(runtime, () => notes.put({ space, key, value: text }))
    },
    async increment(key, by = 1) {
      checkKey(key, 'metadata key')
      checkInteger(by, 'by', Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER)
      // Not repeated after a lost reply: that could count twice.
      return notes.increment(space, key, by)
    },
    async remove(key) {
      checkKey(key, 'metadata key')
      return retryStore(runtime, () => notes.remove(space, key))
    },
    async entries() {
      const found: [string, Json][] = []
      let cursor: string | undefined
      while (found.length < ENTRIES_MAX) {
        const page = await retryStore(runtime, () => notes.list(space, PAGE, cursor))
        for (const { key, value } of page) found.push([key, decodePayload(value)])
        cursor = page.at(-1)?.key
        if (page.length < PAGE) break
      }
      return Object.fromEntries(found)
    },
  }
}
