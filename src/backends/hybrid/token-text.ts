// The text of a token: everything a worker needs to start the job, as words that are cheap to write and to read. The first
// word is its field. `id:lease priority attempts crashes maxAttempts timeout enqueuedAt runAfter extraLength flags name ` and
// then the extra, as JSON when there is any, and the payload. There is no line break in it: JSON written here has none, and a
// payload that came with one, by SQL, does not travel with its token.
import type { ClaimedJob, JobId, LeaseNumber, NewJob } from '../../core/job.ts'
import { laneOf } from '../../core/priority.ts'
import type { LaneBounds } from '../../core/priority.ts'
import { TOKEN_BODY_MAX } from './ports.ts'
import type { LeaseRef } from '../../core/job.ts'
import type { MintedJob, Token, TokenField } from './ports.ts'

type Extra = Partial<Pick<ClaimedJob, 'tags' | 'meta' | 'batch' | 'parents' | 'group' | 'limitKey'>>

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
  const words = splitWords(text)
  const field = words[0]!
  const at = field.lastIndexOf(':')
  const extraAt = wordsEnd
  const bodyAt = extraAt + Number(words[8])
  const extra: Extra = bodyAt === extraAt ? {} : (JSON.parse(text.slice(extraAt, bodyAt)) as Extra) // written above
  const flags = words[9]!
  const enqueuedAtMs = Number(words[6])
  return {
    field,
    needsBody: flags.startsWith('b'),
    job: {
      id: field.slice(0, at) as JobId, // written above
      lease: Number(field.slice(at + 1)) as LeaseNumber, // minted by the ledger
      queue,
      name: words[10]!,
      payload: text.slice(bodyAt),
      priority: Number(words[1]),
      attemptCount: Number(words[2]),
      crashCount: Number(words[3]),
      maxAttempts: Number(words[4]),
      timeoutMs: Number(words[5]),
      enqueuedAtMs,
      runAtMs: enqueuedAtMs + Number(words[7]),
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

const WORDS = 11
/** One line of words is read at a time, so the place for them is made once. */
const wordsRead: string[] = []
let wordsEnd = 0

function splitWords(text: string): readonly string[] {
  let from = 0
  for (let index = 0; index < WORDS; index++) {
    const to = text.indexOf(' ', from)
    if (to < 0) throw new Error('a token has fewer words than it should have')
    wordsRead[index] = text.slice(from, to)
    from = to + 1
  }
  wordsEnd = from
  return wordsRead
}
