// The text of a token: everything a worker needs to start the job, as words that are cheap to write and to read. The first
// word is its field. `id:lease priority attempts crashes maxAttempts timeout enqueuedAt runAfter extraLength flags name ` and
// then the extra, as JSON when there is any, and the payload. There is no line break in it: JSON written here has none, and a
// payload that came with one, by SQL, does not travel with its token.
import type { ClaimedJob, JobId, LeaseNumber, NewJob } from '../../core/job.ts'
import { laneOf } from '../../core/priority.ts'
import type { LaneBounds } from '../../core/priority.ts'
import { WordReader } from '../../store/word-reader.ts'
import { TOKEN_BODY_MAX } from './ports.ts'
import type { LeaseRef } from '../../core/job.ts'
import type { MintedJob, Token, TokenField } from './ports.ts'

type Extra = Partial<Pick<ClaimedJob, 'tags' | 'meta' | 'batch' | 'parents' | 'group' | 'limitKey'>>

const ID_CHARS = 36
const NO_EXTRA: Extra = {}
const NO_TAGS: readonly string[] = []
const NO_PARENTS: readonly JobId[] = []

export function fieldOf({ jobId, lease }: LeaseRef): TokenField {
  return `${jobId}:${lease}`
}

export function refOf(field: TokenField): LeaseRef {
  const at = field.lastIndexOf(':')
  return { jobId: field.slice(0, at) as JobId, lease: Number(field.slice(at + 1)) as LeaseNumber } // minted and written by us
}

const FIELD = /^[0-9a-f-]{36}:\d{1,16}$/

/** Of fields that Redis has named: what somebody else has written there is no lease. */
export function refsIn(fields: readonly TokenField[]): readonly LeaseRef[] {
  return fields.filter((field) => FIELD.test(field)).map(refOf)
}

export interface MintFacts {
  readonly lease: number
  readonly nowMs: number
  readonly priority: number
  readonly maxAttempts: number
  readonly lanes: LaneBounds
}

/** Of a job that its own insert has minted: it is plain and new. */
export function tokenOfNew(job: NewJob, facts: MintFacts): Token {
  const { lease, nowMs } = facts
  const priority = job.priority ?? facts.priority
  const hasExtra = (job.tags !== undefined && job.tags.length > 0) || job.meta !== undefined || job.batch !== undefined
  const extra = hasExtra ? JSON.stringify({ tags: job.tags, meta: job.meta, batch: job.batch }) : ''
  const isLong = !mayTravel(job.payload, extra)
  const words = `${job.id}:${lease} ${priority} 0 0 ${job.maxAttempts ?? facts.maxAttempts} ${job.timeoutMs} ${nowMs} 0`
  const text = `${words} ${extra.length} ${isLong ? 'b' : '-'} ${job.name} ${extra}${isLong ? '' : job.payload}`
  return { lane: laneOf(priority, facts.lanes), lease, text }
}

export function tokenOfMinted(job: MintedJob, lanes: LaneBounds): Token {
  const { id, lease, priority, attemptCount, crashCount, maxAttempts, timeoutMs, enqueuedAtMs, payload } = job
  const extra = extraOf(job)
  const body = payload !== null && mayTravel(payload, extra) ? payload : null
  const flags = `${body === null ? 'b' : '-'}${job.rateLimited ? 'r' : ''}`
  const words = `${id}:${lease} ${priority} ${attemptCount} ${crashCount} ${maxAttempts} ${timeoutMs} ${enqueuedAtMs}`
  const text = `${words} ${job.runAtMs - enqueuedAtMs} ${extra.length} ${flags} ${job.name} ${extra}${body ?? ''}`
  return { lane: laneOf(priority, lanes), lease, text }
}

function mayTravel(payload: string, extra: string): boolean {
  return extra.length + payload.length <= TOKEN_BODY_MAX && !payload.includes('\n')
}

function extraOf({ tags, meta, batch, parents, group, limitKey }: MintedJob): string {
  if (tags.length + parents.length === 0 && meta === null && batch === null && group === null && limitKey === null)
    return ''
  return JSON.stringify({
    tags: tags.length === 0 ? undefined : tags,
    meta: meta ?? undefined,
    batch: batch ?? undefined,
    parents: parents.length === 0 ? undefined : parents,
    group: group ?? undefined,
    limitKey: limitKey ?? undefined,
  })
}

export interface ReadToken {
  readonly field: TokenField
  readonly job: ClaimedJob
  /** The payload did not travel with it. */
  readonly needsBody: boolean
}

/** Throws where the text is none that was written above: Redis has what others have put there. */
export function readToken(text: string, queue: string): ReadToken {
  const words = new WordReader(text)
  const id = words.fixed(ID_CHARS, ':') as JobId // written above
  const lease = words.number() as LeaseNumber // minted by the ledger
  const field = text.slice(0, words.at - 1)
  const priority = words.number()
  const attemptCount = words.number()
  const crashCount = words.number()
  const maxAttempts = words.number()
  const timeoutMs = words.number()
  const enqueuedAtMs = words.number()
  const runAfterMs = words.number()
  const extraLength = words.number()
  const flags = words.word()
  const name = words.word()
  const bodyAt = words.at + extraLength
  const extra: Extra = extraLength === 0 ? NO_EXTRA : (JSON.parse(text.slice(words.at, bodyAt)) as Extra) // written above
  return {
    field,
    needsBody: flags.startsWith('b'),
    job: {
      id,
      lease,
      queue,
      name,
      payload: text.slice(bodyAt),
      priority,
      attemptCount,
      crashCount,
      maxAttempts,
      timeoutMs,
      enqueuedAtMs,
      runAtMs: enqueuedAtMs + runAfterMs,
      tags: extra.tags ?? NO_TAGS,
      meta: extra.meta ?? null,
      batch: extra.batch ?? null,
      parents: extra.parents ?? NO_PARENTS,
      group: extra.group ?? null,
      limitKey: extra.limitKey ?? null,
      rateLimited: flags.endsWith('r'),
    },
  }
}
