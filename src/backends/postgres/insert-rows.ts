// New jobs on their way into SQL: as parallel arrays when nothing but their own row concerns them, else as JSON.
import type { NewJob } from '../../core/job.ts'
import type { Value } from './rows-query.ts'
import { bigintArray, intArray, textArray, uuidArray } from './wire.ts'
import { ON_DUPLICATE, POLICY, UNIQUE_MODE } from './words.ts'

/** No gate, key, parent or link concerns it, and its batch is that of the whole call. */
export function isPlain(job: NewJob, first: NewJob): boolean {
  return (
    job.unique === undefined &&
    job.dependsOn === undefined &&
    job.group === undefined &&
    job.limitKey === undefined &&
    job.schedule === undefined &&
    job.replayOf === undefined &&
    job.batch === first.batch &&
    job.insideBatch === first.insideBatch
  )
}

/** The arguments of millrace.insert_plain. */
export function plainValues(jobs: readonly NewJob[]): readonly Value[] {
  const queueNumbers = new Map<string, number>()
  const queueIndex = jobs.map(({ queue }) => {
    let number = queueNumbers.get(queue)
    if (number === undefined) queueNumbers.set(queue, (number = queueNumbers.size + 1))
    return number
  })
  const first = jobs[0]
  return [
    uuidArray(jobs.map(({ id }) => id)),
    textArray([...queueNumbers.keys()]),
    intArray(queueIndex),
    textArray(jobs.map(({ name }) => name)),
    textArray(jobs.map(({ payload }) => payload)),
    intArray(jobs.map(({ timeoutMs }) => timeoutMs)),
    some(jobs, 'priority') ? intArray(jobs.map(({ priority }) => priority ?? null)) : null,
    some(jobs, 'maxAttempts') ? intArray(jobs.map(({ maxAttempts }) => maxAttempts ?? null)) : null,
    some(jobs, 'delayMs') ? bigintArray(jobs.map(({ delayMs }) => whole(delayMs))) : null,
    some(jobs, 'runAtMs') ? bigintArray(jobs.map(({ runAtMs }) => whole(runAtMs))) : null,
    some(jobs, 'meta') ? textArray(jobs.map(({ meta }) => meta ?? null)) : null,
    some(jobs, 'tags') ? textArray(jobs.map(({ tags }) => arrayLiteral(tags))) : null,
    first?.batch ?? null,
    first?.insideBatch ?? false,
  ]
}

/** The arguments of millrace.insert_one. */
export function oneValues(job: NewJob): readonly Value[] {
  return [
    job.id,
    job.queue,
    job.name,
    job.payload,
    job.timeoutMs,
    job.priority ?? null,
    job.maxAttempts ?? null,
    whole(job.delayMs),
    whole(job.runAtMs),
    job.meta ?? null,
    arrayLiteral(job.tags),
  ]
}

function whole(ms: number | undefined): number | null {
  return ms === undefined ? null : Math.ceil(ms)
}

function some(jobs: readonly NewJob[], field: keyof NewJob): boolean {
  return jobs.some((job) => job[field] !== undefined)
}

function arrayLiteral(tags: readonly string[] | undefined): string | null {
  if (tags === undefined || tags.length === 0) return null
  return `{${tags.map((tag) => `"${tag.replace(/["\\]/g, '\\$&')}"`).join(',')}}`
}

/** The argument of millrace.insert_jobs; payload and meta stay the texts they are. */
export function jobsJson(jobs: readonly NewJob[]): string {
  return JSON.stringify(jobs.map(jobRow))
}

export function jobRow(job: NewJob): object {
  return {
    id: job.id,
    queue: job.queue,
    name: job.name,
    payload: job.payload,
    timeout_ms: job.timeoutMs,
    priority: job.priority,
    max_attempts: job.maxAttempts,
    delay_ms: whole(job.delayMs),
    run_at_ms: whole(job.runAtMs),
    tags: job.tags === undefined || job.tags.length === 0 ? undefined : job.tags,
    meta: job.meta,
    batch: job.batch,
    inside: job.insideBatch,
    parents:
      job.dependsOn === undefined || job.dependsOn.length === 0
        ? undefined
        : job.dependsOn.map(({ parent, onFailure }) => [parent, POLICY[onFailure]]),
    group: job.group,
    limit_key: job.limitKey,
    unique: job.unique && {
      key: job.unique.key,
      mode: UNIQUE_MODE[job.unique.mode],
      window_ms: job.unique.windowMs,
      on_duplicate: ON_DUPLICATE[job.unique.onDuplicate],
    },
    schedule_name: job.schedule?.name,
    tick_ms: job.schedule?.tickMs,
    replay_of: job.replayOf,
  }
}
