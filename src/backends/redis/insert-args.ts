// New jobs as the values of scripts: plain ones by queue, the others one by one with their extras as JSON
// (lua/insert.lua says in which order).
import type { NewJob } from '../../core/job.ts'
import { bytesOf } from './ids.ts'
import type { RedisValue } from './link.ts'
import { contentOf } from './record.ts'
import type { Whereabouts } from './whereabouts.ts'

const BETWEEN = '\n'
/** Characters: Redis closes a connection that sends it a value of half a gigabyte, and nothing is gained with long contents. */
const LINES_MAX = 4 * 2 ** 20

/** Nothing concerns it but its queue: no gate, no key, no batch, no later moment. */
export function isPlain(job: NewJob): boolean {
  return (
    job.ownId !== true &&
    job.unique === undefined &&
    job.batch === undefined &&
    job.dependsOn === undefined &&
    job.group === undefined &&
    job.limitKey === undefined &&
    job.schedule === undefined &&
    job.replayOf === undefined &&
    job.runAtMs === undefined &&
    (job.delayMs ?? 0) <= 0
  )
}

export interface PlainInsert {
  readonly args: readonly RedisValue[]
  /** Of each job of the script, its place in the call. */
  readonly positions: readonly number[]
}

export function plainArgs(jobs: readonly NewJob[]): PlainInsert {
  const byQueue = new Map<string, number[]>()
  for (const [index, { queue }] of jobs.entries()) {
    const known = byQueue.get(queue)
    if (known === undefined) byQueue.set(queue, [index])
    else known.push(index)
  }
  const args: RedisValue[] = ['plain', byQueue.size]
  const positions: number[] = []
  for (const [queue, indexes] of byQueue) {
    const header = commonHeader(jobs, indexes)
    args.push(queue, indexes.length, bytesOf(indexes.map((index) => jobs[index]!.id)), header)
    const contents = indexes.map((index) => contentOf(jobs[index]!))
    if (header === '') for (const [at, index] of indexes.entries()) args.push(headerOf(jobs[index]!), contents[at]!)
    else pushContents(args, contents)
    for (const index of indexes) positions.push(index)
  }
  return { args, positions }
}

/** In one text where they are short and none of them has a line break: a value of its own costs this process and the server a microsecond. */
function pushContents(args: RedisValue[], contents: readonly string[]): void {
  const length = contents.reduce((sum, content) => sum + content.length, 0)
  const areLines = contents.length > 1 && length <= LINES_MAX && !contents.some((content) => content.includes(BETWEEN))
  if (areLines) args.push(1, contents.join(BETWEEN))
  else args.push(contents.length, ...contents)
}

function headerOf({ priority, maxAttempts }: NewJob): string {
  return `${priority ?? '-'} ${maxAttempts ?? '-'}`
}

/** Said once if all have the same; else empty, and each says its own. */
function commonHeader(jobs: readonly NewJob[], indexes: readonly number[]): string {
  const { priority, maxAttempts } = jobs[indexes[0]!]!
  const isCommon = indexes.every((at) => jobs[at]!.priority === priority && jobs[at]!.maxAttempts === maxAttempts)
  return isCommon ? headerOf(jobs[indexes[0]!]!) : ''
}

/** For `inserting.insert` of lua/_insert.lua: a count, then id, content and extras of each. */
export function insertArgs(jobs: readonly NewJob[], where?: Whereabouts): readonly RedisValue[] {
  return [jobs.length, ...jobs.flatMap((job) => [job.id, contentOf(job), extrasOf(job, where)])]
}

export function extrasOf(job: NewJob, where?: Whereabouts): string {
  const { unique, schedule, dependsOn } = job
  return JSON.stringify({
    queue: job.queue,
    own: job.ownId,
    priority: job.priority,
    attempts: job.maxAttempts,
    delay: job.delayMs === undefined ? undefined : Math.ceil(job.delayMs),
    runAt: job.runAtMs === undefined ? undefined : Math.ceil(job.runAtMs),
    batch: job.batch,
    inside: job.insideBatch,
    // With a guess where the parent is.
    deps: dependsOn?.map(({ parent, onFailure }) => [parent, onFailure, where?.of(parent) ?? '']),
    group: job.group,
    limitKey: job.limitKey,
    unique: unique && { key: unique.key, mode: unique.mode, window: unique.windowMs, on: unique.onDuplicate },
    schedule: schedule && `${schedule.tickMs} ${schedule.name}`,
    replayOf: job.replayOf,
  })
}
