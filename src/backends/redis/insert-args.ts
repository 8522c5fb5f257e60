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
  const sections = sectionsOf(jobs)
  const args: RedisValue[] = ['plain', sections.length]
  for (const { queue, jobs: own } of sections) {
    const header = commonHeader(own)
    args.push(queue, own.length, bytesOf(own.map(({ id }) => id)), header)
    const contents = own.map(contentOf)
    if (header === '') for (const [at, job] of own.entries()) args.push(headerOf(job), contents[at]!)
    else pushContents(args, contents)
  }
  return { args, positions: sections.flatMap(({ positions }) => positions) }
}

/** The jobs of one queue, and where they are in the call. */
interface Section {
  readonly queue: string
  readonly jobs: NewJob[]
  readonly positions: number[]
}

function sectionsOf(jobs: readonly NewJob[]): readonly Section[] {
  const byQueue = new Map<string, Section>()
  let section: Section | undefined
  for (let index = 0; index < jobs.length; index++) {
    const job = jobs[index]!
    // As a rule all are of one queue.
    if (section?.queue !== job.queue) {
      section = byQueue.get(job.queue) ?? { queue: job.queue, jobs: [], positions: [] }
      byQueue.set(job.queue, section)
    }
    section.jobs.push(job)
    section.positions.push(index)
  }
  return [...byQueue.values()]
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
function commonHeader(jobs: readonly NewJob[]): string {
  const { priority, maxAttempts } = jobs[0]!
  const isCommon = jobs.every((job) => job.priority === priority && job.maxAttempts === maxAttempts)
  return isCommon ? headerOf(jobs[0]!) : ''
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
