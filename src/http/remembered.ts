// One answer for many askers: probes that come often must not become load on the store. Whoever asks while an answer is
// on its way waits for it; one that is young enough is given again, a failure as well.
import type { Clock } from '../runtime/clock.ts'

export interface RememberedOptions {
  readonly clock: Clock
  /** How long an answer is given again. */
  readonly keepMs: number
  /** An answer that has not come by then is not waited for any more: the next asker asks anew. */
  readonly waitMs: number
}

export function remembered<Value>(
  { clock, keepMs, waitMs }: RememberedOptions,
  read: () => Promise<Value>,
): () => Promise<Value> {
  let last: { readonly answer: Promise<Value>; readonly askedMs: number; doneMs: number | undefined } | undefined
  return () => {
    const nowMs = clock.monoMs()
    const isUsable =
      last !== undefined && (last.doneMs === undefined ? nowMs - last.askedMs < waitMs : nowMs - last.doneMs < keepMs)
    if (last !== undefined && isUsable) return last.answer
    const answer = Promise.resolve().then(read)
    const asked = { answer, askedMs: nowMs, doneMs: undefined as number | undefined }
    const done = (): void => void (asked.doneMs = clock.monoMs())
    answer.then(done, done)
    last = asked
    return answer
  }
}
