// Jobs as text: the columns of lists and the fields of one.
import type { Attempt, Job, JobLogLine } from '../client/job-view.ts'
import { formatDuration } from '../core/duration.ts'
import type { JobStatus } from '../core/job.ts'
import type { Output } from './output.ts'
import type { Column, Style } from './table.ts'
import { counted, inline } from './text.ts'

export const STATUS_STYLES: Partial<Record<JobStatus, Style>> = {
  running: 'cyan',
  completed: 'green',
  failed: 'red',
  cancelled: 'dim',
  blocked: 'yellow',
}

export function jobColumns(out: Output): readonly Column<Job>[] {
  return [
    { title: 'ID', of: ({ id }) => id },
    { title: 'QUEUE', of: ({ queue }) => queue },
    { title: 'JOB', of: ({ name }) => name },
    { title: 'STATUS', of: ({ status }) => status, style: ({ status }) => STATUS_STYLES[status] },
    { title: 'PRIO', of: ({ priority }) => priority, align: 'right' },
    { title: 'TRIES', of: ({ attemptCount, maxAttempts }) => `${attemptCount}/${maxAttempts}`, align: 'right' },
    { title: 'ENQUEUED', of: ({ enqueuedAt }) => out.time(enqueuedAt) },
    { title: 'DETAIL', of: detailOf, flex: true },
  ]
}

export function deadColumns(out: Output): readonly Column<Job>[] {
  return [
    { title: 'ID', of: ({ id }) => id },
    { title: 'QUEUE', of: ({ queue }) => queue },
    { title: 'JOB', of: ({ name }) => name },
    { title: 'TRIES', of: ({ attemptCount, maxAttempts }) => `${attemptCount}/${maxAttempts}`, align: 'right' },
    { title: 'FAILED', of: ({ finishedAt }) => out.time(finishedAt) },
    { title: 'ERROR', of: errorOf, flex: true, style: () => 'red' },
  ]
}

/** One line that tells this job from its neighbours, for questions. */
export function jobLine({ id, name, queue, status }: Job): string {
  return `${id} ${name} in ${queue}, ${status}`
}

export function jobFields(job: Job, out: Output): string {
  const optional = (name: string, value: string | null): readonly (readonly [string, string])[] =>
    value === null || value === '' ? [] : [[name, value]]
  const time = (name: string, at: Date | null) => (at === null ? [] : [[name, out.time(at)] as const])
  return out.fields([
    ['id', job.id],
    ['job', job.name],
    ['queue', job.connection === 'default' ? job.queue : `${job.queue} on ${job.connection}`],
    ['status', job.waitsFor === null ? job.status : `${job.status}, waits for ${job.waitsFor}`],
    ['priority', String(job.priority)],
    ['attempts', `${job.attemptCount} of ${job.maxAttempts}${crashes(job.crashCount)}`],
    ['timeout', formatDuration(job.timeoutMs)],
    ['enqueued', out.time(job.enqueuedAt)],
    ...(job.status === 'scheduled' ? time('runs', job.runAt) : []),
    ...time('started', job.startedAt),
    ...time('finished', job.finishedAt),
    ...optional('worker', job.worker),
    ...optional('batch', job.batch),
    ...optional('schedule', job.schedule === null ? null : `${job.schedule.name}, tick ${out.time(job.schedule.tick)}`),
    ...optional('tags', job.tags.join(', ')),
    ...optional('group', job.group),
    ...optional('limit key', job.limitKey),
    ...optional('unique key', job.uniqueKey),
    ...optional('parents', job.parents.join(', ')),
    ...optional('replay of', job.replayOf),
    ...optional('replayed into', job.replayedInto),
    ...optional('cancel', job.cancelRequested ? 'was asked for; its worker has been told' : null),
    ['payload', inline(job.payload)],
    ...(job.meta === null ? [] : [['meta', inline(job.meta)] as const]),
    ...(job.progress === null ? [] : [['progress', inline(job.progress)] as const]),
    ...(job.result === null ? [] : [['result', inline(job.result)] as const]),
    ...optional('error', job.lastError === null ? null : errorOf(job)),
  ])
}

export function attemptColumns(out: Output): readonly Column<Attempt>[] {
  return [
    { title: 'ATTEMPT', of: ({ attempt }) => attempt, align: 'right' },
    { title: 'STATUS', of: ({ status }) => status },
    { title: 'STARTED', of: ({ startedAt }) => out.time(startedAt) },
    {
      title: 'RAN',
      of: ({ durationMs }) => (durationMs === null ? '-' : formatDuration(Math.round(durationMs))),
      align: 'right',
    },
    { title: 'WORKER', of: ({ worker }) => worker ?? '-' },
    { title: 'SAYS', of: ({ error, note }) => error?.message ?? note ?? '', flex: true },
  ]
}

export function logColumns(out: Output): readonly Column<JobLogLine>[] {
  return [
    { title: 'AT', of: ({ at }) => out.time(at) },
    { title: 'ATTEMPT', of: ({ attempt }) => attempt, align: 'right' },
    { title: 'LEVEL', of: ({ level }) => level },
    { title: 'MESSAGE', of: ({ message }) => message, flex: true },
  ]
}

export function errorOf({ lastError }: Pick<Job, 'lastError'>): string {
  if (lastError === null) return '-'
  const { name, message, code } = lastError
  return `${name}${code === undefined ? '' : ` (${code})`}: ${message}`
}

function detailOf(job: Job): string {
  if (job.cancelRequested && job.status === 'running') return 'cancel asked for'
  if (job.waitsFor !== null) return `waits for ${job.waitsFor}`
  if (job.lastError !== null && job.status !== 'completed') return job.lastError.message
  if (job.progress !== null && job.status === 'running') return inline(job.progress)
  return ''
}

function crashes(count: number): string {
  return count === 0 ? '' : `, ended the life of its worker ${counted(count, 'time')}`
}
