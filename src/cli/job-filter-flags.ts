// Flags that pick jobs, the same for every command that lists or ends them, and the picking itself: what is
// picked is frozen before anybody is asked, so that exactly those jobs are touched that were counted.
import { Option } from 'commander'
import type { Command } from 'commander'
import type { JobListFilter, PageOptions } from '../client/job-filter.ts'
import type { Job } from '../client/job-view.ts'
import type { JobPage } from '../client/jobs.ts'
import { parseDuration } from '../core/duration.ts'
import type { Duration } from '../core/duration.ts'
import { JOB_STATUSES } from '../core/job.ts'
import type { JobStatus } from '../core/job.ts'
import type { Json } from '../core/json.ts'
import { LIMITS } from '../core/limits.ts'
import { CliError } from './cli-error.ts'
import { list, wholeNumber } from './command.ts'

export interface FilterFlags {
  readonly queue?: string
  readonly name?: string
  readonly status?: readonly JobStatus[]
  readonly tag?: string
  readonly batch?: string
  readonly worker?: string
  readonly schedule?: string
  readonly group?: string
  readonly error?: string
  readonly payload?: string
  readonly since?: string
  readonly until?: string
  readonly connection?: string
}

export interface PageFlags {
  readonly limit?: number
  readonly cursor?: string
}

export function filterOptions(command: Command, { status = true }: { readonly status?: boolean } = {}): Command {
  command.option('-q, --queue <name>', 'of this queue').option('-n, --name <job>', 'of this kind')
  if (status) {
    const statuses = new Option('-s, --status <list>', `one or more of ${JOB_STATUSES.join(', ')}`)
    command.addOption(statuses.argParser(list))
  }
  return command
    .option('-t, --tag <tag>', 'with this tag')
    .option('--batch <id>', 'of this batch')
    .option('--worker <id>', 'run by this worker')
    .option('--schedule <name>', 'enqueued by this schedule')
    .option('--group <key>', 'of this group')
    .option('--error <text>', 'whose last error has this text in its name, message or code')
    .option('--payload <path=value>', 'whose payload has this value, such as user.id=42; not on every backend')
    .option('--since <when>', 'enqueued since: a duration such as 2h, or a date')
    .option('--until <when>', 'enqueued until: a duration such as 1d, or a date')
    .option('--connection <name>', 'on this connection')
}

export function pageOptions(command: Command): Command {
  return command
    .option('-l, --limit <count>', `how many, at most ${LIMITS.pageSizeMax}`, wholeNumber(1, LIMITS.pageSizeMax))
    .option('--cursor <cursor>', 'go on where the page before ended')
}

export function toFilter(flags: FilterFlags, nowMs: number): JobListFilter {
  const { queue, name, status, tag, batch, worker, schedule, group, error, payload, since, until, connection } = flags
  return {
    ...(queue !== undefined && { queue }),
    ...(name !== undefined && { name }),
    ...(status !== undefined && { status }),
    ...(tag !== undefined && { tag }),
    ...(batch !== undefined && { batch }),
    ...(worker !== undefined && { worker }),
    ...(schedule !== undefined && { schedule }),
    ...(group !== undefined && { group }),
    ...(error !== undefined && { errorText: error }),
    ...(payload !== undefined && { payload: payloadOf(payload) }),
    ...(since !== undefined && { enqueuedFrom: momentOf(since, '--since', nowMs) }),
    ...(until !== undefined && { enqueuedUntil: momentOf(until, '--until', nowMs) }),
    ...(connection !== undefined && { connection }),
  }
}

export function toPage({ limit, cursor }: PageFlags): PageOptions {
  return { ...(limit !== undefined && { limit }), ...(cursor !== undefined && { cursor }) }
}

/** `2h` ago, or a date. */
export function momentOf(text: string, what: string, nowMs: number): number {
  const at = /^\d{4}-/.test(text) ? Date.parse(text) : Number.NaN
  // Anything else has to be a duration, and the library says what one looks like.
  return Number.isNaN(at) ? nowMs - parseDuration(text as Duration, what) : at
}

/** A value that reads as JSON is that JSON; any other is text. */
function payloadOf(text: string): NonNullable<JobListFilter['payload']> {
  const at = text.indexOf('=')
  if (at < 1) throw new CliError('USAGE', `--payload is ${JSON.stringify(text)}: write path=value, such as user.id=42`)
  return { path: text.slice(0, at), equals: jsonOrText(text.slice(at + 1)) }
}

export function jsonOrText(text: string): Json {
  try {
    return JSON.parse(text) as Json
  } catch {
    return text
  }
}

export interface Picked {
  readonly jobs: readonly Job[]
  /** There are more than were asked for. */
  readonly more: boolean
}

export async function pickJobs(read: (page: PageOptions) => Promise<JobPage>, limit: number): Promise<Picked> {
  const jobs: Job[] = []
  let cursor: string | undefined
  do {
    const size = Math.min(LIMITS.pageSizeMax, limit - jobs.length)
    const page = await read({ limit: size, ...(cursor !== undefined && { cursor }) })
    jobs.push(...page.items)
    cursor = page.nextCursor
  } while (cursor !== undefined && jobs.length < limit)
  return { jobs, more: cursor !== undefined }
}
