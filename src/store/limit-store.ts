// Rate limits at the start of a job. The limits themselves are part of the queue record, the arithmetic
// is core/rate.ts; the store does one compare-and-set per key. Concurrency is kept by admission.
export interface LimitStore {
  /** One token of each bucket that applies to (queue, key), or the wait until its reserved place. */
  take(requests: readonly RateRequest[]): Promise<readonly RateReply[]>
  inspect(queue: string, key?: string): Promise<LimitUse>
}

export interface RateRequest {
  readonly queue: string
  readonly key: string | null
}

export type RateReply = { readonly ok: true } | { readonly ok: false; readonly waitMs: number }

export interface LimitUse {
  readonly slotsUsed: number
  readonly slotsLimit: number | null
  readonly waiting: number
  /** Until the next token; 0 when one is there, null without a rate limit. */
  readonly nextTokenInMs: number | null
}
