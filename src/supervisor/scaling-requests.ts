// Forcing a size. Only the leader of the autoscaler writes plans, because only it knows the limits, the hosts and what
// else wants their processes; so whoever forces a size leaves a request, which the leader obeys within a second or two.
// A request outlives a change of leader, is obeyed in the order of its key, and is answered under its id. Obeying it
// twice does nothing the second time: the plan names the requests of its last steps.
import { SCALING } from '../core/limits.ts'
import { checkInteger, checkName, invalidOption } from '../core/names.ts'
import { MillraceError } from '../core/errors.ts'
import { sleep } from '../runtime/clock.ts'
import { createRuntime } from '../runtime/runtime.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { NoteStore } from '../store/note-store.ts'
import { parsed } from './plan-notes.ts'

export const REQUEST_SPACE = 'scaling-requests'
export const RESULT_SPACE = 'scaling-results'

const POLL_MS = 200

/** A pool, or the pools that serve a queue. */
export type ForceTarget = { readonly pool: string } | { readonly queue: string }

export interface ForceOptions {
  /** Shown in the history. Default `operator`. */
  readonly by?: string
  /** Past the minimum and maximum of the queue; what the hosts allow always holds. */
  readonly beyondLimits?: boolean
}

export interface ForceRequest extends Required<ForceOptions> {
  readonly id: string
  readonly key: string
  readonly target: ForceTarget
  readonly to: number
  readonly reason: string
}

export type ForceResult =
  | {
      readonly ok: true
      readonly pools: readonly { readonly pool: string; readonly from: number; readonly to: number }[]
    }
  | { readonly ok: false; readonly message: string }

export interface ForceParts {
  readonly notes: NoteStore
  readonly runtime?: Pick<Runtime, 'clock' | 'newId'>
}

/** Leaves the request; `forceResult` waits for the answer. */
export async function forceScale(
  { notes, runtime = createRuntime() }: ForceParts,
  target: ForceTarget,
  to: number,
  reason: string,
  options: ForceOptions = {},
): Promise<ForceRequest> {
  const { by = 'operator', beyondLimits = false } = options
  checkInteger(to, 'the number of workers', 0, SCALING.workersMax)
  const id = runtime.newId()
  // Ids of one process rise with time, so requests of one caller are obeyed in the order in which they were made.
  const key = `${new Date(runtime.clock.nowMs()).toISOString()}:${id}`
  const request = {
    id,
    key,
    target: checkTarget(target),
    to,
    reason: text(reason, 'reason'),
    by: text(by, 'by'),
    beyondLimits,
  }
  await notes.put({ space: REQUEST_SPACE, key, value: JSON.stringify(request), ttlMs: SCALING.requestLifeMs })
  return request
}

/** Throws WAIT_TIMEOUT when nobody obeyed in time; it may still be obeyed until it expires. */
export async function forceResult(
  { notes, runtime = createRuntime() }: ForceParts,
  { id }: Pick<ForceRequest, 'id'>,
  timeoutMs: number = 10_000,
): Promise<ForceResult> {
  const endMs = runtime.clock.monoMs() + timeoutMs
  for (;;) {
    const note = await notes.get(RESULT_SPACE, id)
    if (note !== null) return parsed(note.value) as unknown as ForceResult // written below
    if (runtime.clock.monoMs() >= endMs) {
      const message = `no autoscaler has answered within ${timeoutMs} ms: is a supervisor running, and is autoscaling switched on?`
      throw new MillraceError('WAIT_TIMEOUT', message, { retryable: true })
    }
    await sleep(runtime.clock, POLL_MS)
  }
}

/** Takes a request back, if it was not obeyed yet. */
export async function withdrawRequest(notes: NoteStore, { key }: Pick<ForceRequest, 'key'>): Promise<boolean> {
  return await notes.remove(REQUEST_SPACE, key)
}

export async function readRequests(notes: NoteStore): Promise<readonly ForceRequest[]> {
  const page = await notes.list(REQUEST_SPACE, SCALING.requestsMax)
  return page.map(({ key, value }) => decodeRequest(key, value))
}

/** First the answer, then the end of the request: who asks must not find neither. */
export async function answerRequest(notes: NoteStore, request: ForceRequest, result: ForceResult): Promise<void> {
  const value = JSON.stringify(result)
  await notes.put({ space: RESULT_SPACE, key: request.id, value, ttlMs: SCALING.requestLifeMs })
  await notes.remove(REQUEST_SPACE, request.key)
}

/** One that cannot be read asks for a pool that there is not, and is answered so. */
function decodeRequest(key: string, value: string): ForceRequest {
  const { id, target, to, reason, by, beyondLimits } = parsed(value)
  const known = typeof target === 'object' && target !== null ? (target as ForceTarget) : { pool: '' }
  return {
    id: typeof id === 'string' && id !== '' ? id : key,
    key,
    target: known,
    to: Number.isSafeInteger(to) ? (to as number) : 0, // just checked
    reason: String(reason).slice(0, SCALING.reasonCharsMax),
    by: String(by).slice(0, SCALING.reasonCharsMax),
    beyondLimits: beyondLimits === true,
  }
}

function checkTarget(target: ForceTarget): ForceTarget {
  return 'queue' in target ? { queue: checkName(target.queue, 'queue') } : { pool: checkName(target.pool, 'pool') }
}

function text(value: unknown, what: string): string {
  if (typeof value === 'string' && value.trim() !== '' && value.length <= SCALING.reasonCharsMax) return value
  throw invalidOption(what, value, `a text of 1-${SCALING.reasonCharsMax} characters: it is kept in the history`)
}
