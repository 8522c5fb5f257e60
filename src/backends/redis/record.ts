// A stored job between Redis and TypeScript: its content, which scripts treat as opaque, and the whole record as
// lua/_record.lua replies it. What the fields mean is written there.
import type { AttemptError } from '../../core/attempt-error.ts'
import { isFinal } from '../../core/job.ts'
import type { BatchId, JobId, JobStatus, LeaseNumber, NewJob, StoredJob, WaitReason, WorkerId } from '../../core/job.ts'

/** What a newer request with the same unique key may replace. */
export type Content = Pick<StoredJob, 'name' | 'payload' | 'timeoutMs' | 'tags' | 'meta'>

export interface Body extends Content {
  readonly enqueuedAtMs: number
  readonly priority: number
  readonly maxAttempts: number
}

const NO_TAGS: readonly string[] = []
const NO_EXTRAS: Partial<Content> = {}

/** `timeoutMs nameLength extrasLength name extras payload`; extras are JSON, empty without tags and meta. */
export function contentOf({ name, payload, timeoutMs, tags, meta }: NewJob): string {
  const hasExtras = (tags !== undefined && tags.length > 0) || meta !== undefined
  const extras = hasExtras ? JSON.stringify({ tags, meta }) : ''
  return `${timeoutMs} ${name.length} ${extras.length} ${name}${extras}${payload}`
}

/** The server has put `enqueuedAt priority maxAttempts` before the content. Every claim of a job reads one: no lists, no copies. */
export function parseBody(body: string): Body {
  const priorityAt = body.indexOf(' ') + 1
  const attemptsAt = body.indexOf(' ', priorityAt) + 1
  const timeoutAt = body.indexOf(' ', attemptsAt) + 1
  const nameLengthAt = body.indexOf(' ', timeoutAt) + 1
  const extrasLengthAt = body.indexOf(' ', nameLengthAt) + 1
  const nameAt = body.indexOf(' ', extrasLengthAt) + 1
  const extrasAt = nameAt + numberAt(body, nameLengthAt, extrasLengthAt)
  const payloadAt = extrasAt + numberAt(body, extrasLengthAt, nameAt)
  const extras = extrasAt === payloadAt ? NO_EXTRAS : (JSON.parse(body.slice(extrasAt, payloadAt)) as Partial<Content>) // by contentOf
  return {
    enqueuedAtMs: numberAt(body, 0, priorityAt),
    priority: numberAt(body, priorityAt, attemptsAt),
    maxAttempts: numberAt(body, attemptsAt, timeoutAt),
    timeoutMs: numberAt(body, timeoutAt, nameLengthAt),
    name: body.slice(nameAt, extrasAt),
    payload: body.slice(payloadAt),
    tags: extras.tags ?? NO_TAGS,
    meta: extras.meta ?? null,
  }
}

const ZERO = 48

/** The number before the space that is before `next`. Nearly always digits, and reading those is four times as fast. */
function numberAt(body: string, from: number, next: number): number {
  let value = 0
  for (let at = from; at < next - 1; at++) {
    const digit = body.charCodeAt(at) - ZERO
    if (digit < 0 || digit > 9) return Number(body.slice(from, next - 1))
    value = value * 10 + digit
  }
  return value
}

export type Fields = ReadonlyMap<string, string>

/** Names and values one after the other, as HGETALL answers. */
export function fieldsOf(flat: readonly string[]): Fields {
  const fields = new Map<string, string>()
  for (let i = 0; i < flat.length; i += 2) fields.set(flat[i]!, flat[i + 1]!)
  return fields
}

/** What `records.reply` of lua/_record.lua answers for one job. */
export type JobReply = readonly [queue: string, id: string, body: string, fields: readonly string[]]

export function parseReply([queue, id, body, flat]: JobReply): StoredJob {
  return parseJob(queue, id, body, fieldsOf(flat))
}

export function parseJob(queue: string, id: string, body: string, fields: Fields): StoredJob {
  const { enqueuedAtMs, ...content } = parseBody(body)
  const status = (fields.get('status') ?? 'queued') as JobStatus // scripts write these words only
  const startedAtMs = timeOf(fields, 'started')
  const finishedAtMs = timeOf(fields, 'finished')
  const error = fields.get('error')
  // Stamps of the quick way are not written twice.
  const touched = [finishedAtMs, status === 'running' ? startedAtMs : null, timeOf(fields, 'updated')]
  return {
    id: id as JobId, // the caller asked for it
    queue,
    ...content,
    status,
    attemptCount: Number(fields.get('attempt') ?? 0),
    crashCount: Number(fields.get('crashes') ?? 0),
    runAtMs: timeOf(fields, 'runAt') ?? enqueuedAtMs,
    enqueuedAtMs,
    updatedAtMs: Math.max(enqueuedAtMs, ...touched.map((atMs) => atMs ?? 0)),
    startedAtMs,
    finishedAtMs: isFinal(status) ? finishedAtMs : null,
    lastError: error === undefined ? null : (JSON.parse(error) as AttemptError), // written from an AttemptError
    result: fields.get('result') ?? null,
    progress: fields.get('progress') ?? null,
    worker: (fields.get('worker') ?? null) as WorkerId | null, // written by a claim
    lease: Number(fields.get('lease') ?? 0) as LeaseNumber, // minted by a claim
    batch: (fields.get('batch') ?? null) as BatchId | null, // as inserted
    group: fields.get('group') ?? null,
    limitKey: fields.get('limitKey') ?? null,
    uniqueKey: uniqueKeyOf(fields.get('unique')),
    parents: parentsOf(fields.get('parents')),
    schedule: scheduleOf(fields.get('schedule')),
    waitsFor: (fields.get('waits') ?? null) as WaitReason | null, // scripts write these words only
    cancelRequested: fields.has('cancel'),
    replayOf: (fields.get('replayOf') ?? null) as JobId | null, // as inserted
    replayedAtMs: timeOf(fields, 'replayedAt'),
    replayedBy: fields.get('replayedBy') ?? null,
    replayedInto: (fields.get('replayedInto') ?? null) as JobId | null, // as given
  }
}

function timeOf(fields: Fields, name: string): number | null {
  const value = fields.get(name)
  return value === undefined ? null : Number(value)
}

/** `mode key`. */
function uniqueKeyOf(unique: string | undefined): string | null {
  return unique === undefined ? null : unique.slice(unique.indexOf(' ') + 1)
}

/** `id policy id policy …` */
export function parentsOf(text: string | undefined): readonly JobId[] {
  return text === undefined ? [] : (text.split(' ').filter((_, index) => index % 2 === 0) as JobId[]) // ids by their place
}

/** `tickMs name`. */
function scheduleOf(text: string | undefined): StoredJob['schedule'] {
  if (text === undefined) return null
  const space = text.indexOf(' ')
  return { name: text.slice(space + 1), tickMs: Number(text.slice(0, space)) }
}
