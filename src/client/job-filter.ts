// What to list, as people say it, checked and turned into the filter and page of the store seam.
import { MillraceError } from '../core/errors.ts'
import { JOB_STATUSES } from '../core/job.ts'
import type { JobStatus, WorkerId } from '../core/job.ts'
import type { Json } from '../core/json.ts'
import { DEFAULTS, LIMITS } from '../core/limits.ts'
import { checkInteger, checkKey, checkKnownOptions, checkName, invalidOption } from '../core/names.ts'
import type { JobFilter, PageRequest } from '../store/job-query.ts'
import type { Capabilities } from '../store/ports.ts'
import { checkBatchId } from './ids.ts'

export interface JobListFilter {
  /** Default: the connection of `queue`, else the default one. */
  readonly connection?: string
  readonly queue?: string
  readonly name?: string
  readonly status?: JobStatus | readonly JobStatus[]
  readonly tag?: string
  readonly batch?: string
  readonly worker?: string
  readonly schedule?: string
  readonly group?: string
  readonly enqueuedFrom?: Date | number
  readonly enqueuedUntil?: Date | number
  readonly finishedFrom?: Date | number
  readonly finishedUntil?: Date | number
  /** Part of the last error: its name, message or code, in any case. */
  readonly errorText?: string
  /** The field at this path (`user.id`, or its parts) equals this value. Not on every backend. */
  readonly payload?: { readonly path: string | readonly string[]; readonly equals: Json }
}

export interface PageOptions {
  /** Default 50, at most 200. */
  readonly limit?: number
  /** `nextCursor` of the page before. */
  readonly cursor?: string
}

export const FILTERS = [
  'connection',
  'queue',
  'name',
  'status',
  'tag',
  'batch',
  'worker',
  'schedule',
  'group',
  'enqueuedFrom',
  'enqueuedUntil',
  'finishedFrom',
  'finishedUntil',
  'errorText',
  'payload',
] as const satisfies readonly (keyof JobListFilter)[]

const CURSOR_CHARS_MAX = 500
const ERROR_TEXT_CHARS_MAX = 500
const PATH_PARTS_MAX = 20

/** Before anything is read from it. */
export function checkFilterNames(filter: JobListFilter): void {
  checkKnownOptions(filter, FILTERS, 'job filter')
}

export function toJobFilter(filter: JobListFilter, capabilities: Pick<Capabilities, 'payloadSearch'>): JobFilter {
  checkFilterNames(filter)
  const { queue, name, status, tag, batch, worker, schedule, group, errorText, payload } = filter
  return {
    ...(queue !== undefined && { queue: checkName(queue, 'queue') }),
    ...(name !== undefined && { name: checkName(name, 'job') }),
    ...(status !== undefined && { status: checkStatuses(status) }),
    ...(tag !== undefined && { tag: checkKey(tag, 'tag') }),
    ...(batch !== undefined && { batch: checkBatchId(batch) }),
    ...(worker !== undefined && { worker: checkKey(worker, 'worker') as WorkerId }), // only compared
    ...(schedule !== undefined && { schedule: checkName(schedule, 'schedule') }),
    ...(group !== undefined && { group: checkKey(group, 'group') }),
    ...moment('enqueuedFromMs', filter.enqueuedFrom),
    ...moment('enqueuedUntilMs', filter.enqueuedUntil),
    ...moment('finishedFromMs', filter.finishedFrom),
    ...moment('finishedUntilMs', filter.finishedUntil),
    ...(errorText !== undefined && { errorText: checkText(errorText) }),
    ...(payload !== undefined && { payload: checkPayloadFilter(payload, capabilities) }),
  }
}

export function toPageRequest(page: PageOptions): PageRequest {
  checkKnownOptions(page, ['limit', 'cursor'], 'page')
  const limit = checkInteger(page.limit ?? DEFAULTS.pageSize, 'limit', 1, LIMITS.pageSizeMax)
  if (page.cursor === undefined) return { limit }
  if (typeof page.cursor !== 'string' || page.cursor.length > CURSOR_CHARS_MAX) {
    throw invalidOption('cursor', page.cursor, 'the nextCursor of a page')
  }
  return { limit, cursor: page.cursor }
}

function checkStatuses(status: JobStatus | readonly JobStatus[]): readonly JobStatus[] {
  const list = typeof status === 'string' ? [status] : status
  const bad = Array.isArray(list) ? list.find((one) => !JOB_STATUSES.includes(one)) : list
  if (bad !== undefined) throw invalidOption('status', bad, `one or more of ${JOB_STATUSES.join(', ')}`)
  return list
}

function moment(
  field: 'enqueuedFromMs' | 'enqueuedUntilMs' | 'finishedFromMs' | 'finishedUntilMs',
  value?: Date | number,
) {
  if (value === undefined) return {}
  const ms = value instanceof Date ? value.getTime() : value
  if (typeof ms !== 'number' || !Number.isFinite(ms))
    throw invalidOption(field.slice(0, -2), value, 'a Date or milliseconds')
  return { [field]: ms }
}

function checkText(text: string): string {
  if (typeof text === 'string' && text.length > 0 && text.length <= ERROR_TEXT_CHARS_MAX && !text.includes('\0'))
    return text
  throw invalidOption('errorText', text, `1-${ERROR_TEXT_CHARS_MAX} characters`)
}

function checkPayloadFilter(
  { path, equals }: NonNullable<JobListFilter['payload']>,
  capabilities: Pick<Capabilities, 'payloadSearch'>,
): NonNullable<JobFilter['payload']> {
  if (!capabilities.payloadSearch) {
    throw new MillraceError('NOT_SUPPORTED', 'this backend cannot search by payload: use tags instead', {
      details: { option: 'payload' },
    })
  }
  const parts = typeof path === 'string' ? path.split('.') : path
  const fits = Array.isArray(parts) && parts.length > 0 && parts.length <= PATH_PARTS_MAX
  if (!fits || !parts.every((part) => typeof part === 'string' && part !== '')) {
    throw invalidOption('payload.path', path, `1-${PATH_PARTS_MAX} field names`)
  }
  if (equals === undefined) throw invalidOption('payload.equals', equals, 'a JSON value')
  return { path: parts, equals }
}
