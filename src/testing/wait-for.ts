// Waiting for a job to get somewhere, in real time. Race-safe: what has already happened is found in the
// ledger, what happens later is seen in the moment it happens, however short it lasts.
import { AssertionError } from 'node:assert'
import type { Job } from '../client/job-view.ts'
import type { AnyJob } from '../core/definition.ts'
import { formatDuration, parseDuration } from '../core/duration.ts'
import type { Duration } from '../core/duration.ts'
import { JOB_STATUSES, isFinal } from '../core/job.ts'
import type { JobStatus } from '../core/job.ts'
import { checkKnownOptions, invalidOption } from '../core/names.ts'
import { systemClock } from '../runtime/clock.ts'
import { describeJobs } from './describe.ts'
import type { Entry, Ledger } from './ledger.ts'
import type { WaitTarget } from './types.ts'

/** Shorter than the 5 s after which most runners give up without a reason. */
const TIMEOUT_DEFAULT_MS = 4_000

interface Wanted {
  readonly is: (job: Job) => boolean
  /** One particular job: once it has ended otherwise, there is nothing to wait for. */
  readonly isOne: boolean
  /** Code of the caller, which may throw. */
  readonly isPredicate?: true
  readonly what: string
}

export function waitFor(
  ledger: Ledger,
  target: WaitTarget<readonly AnyJob[]>,
  status: JobStatus = 'completed',
  options: { readonly timeout?: Duration } = {},
): Promise<Job> {
  checkKnownOptions(options, ['timeout'], 'waitFor()')
  if (!JOB_STATUSES.includes(status)) throw invalidOption('status', status, `one of ${JOB_STATUSES.join(', ')}`)
  const timeoutMs = parseDuration(options.timeout ?? TIMEOUT_DEFAULT_MS, 'timeout')
  const wanted = wantedOf(target)
  const isThere = ({ job, seen }: Entry): boolean => wanted.is(job) && seen.has(status)
  const isLost = ({ job }: Entry): boolean => wanted.isOne && isFinal(job.status) && wanted.is(job)

  return new Promise((resolve, reject) => {
    const stopListening = ledger.onChange((entry) => queueMicrotask(() => look(entry)))
    const end = (answer: () => void): void => {
      stopListening()
      timer.cancel()
      answer()
    }
    const fail = (why: string): void => {
      const near = wanted.isPredicate ? [] : ledger.entries().filter(({ job }) => wanted.is(job))
      const found = near.length > 0 ? near : ledger.entries()
      const list =
        found.length === 0
          ? 'no job was enqueued'
          : `there ${near.length > 0 ? 'was' : 'was only'}:\n${describeJobs(found)}`
      const message = `${why} ${wanted.what} to be ${status}; ${list}`
      end(() => reject(new AssertionError({ message, operator: 'waitFor' })))
    }
    const timer = systemClock.timer(timeoutMs, () => fail(`waited ${formatDuration(timeoutMs)} for`), {
      keepAlive: true,
    })
    const look = (entry: Entry): void => {
      try {
        if (isThere(entry)) end(() => resolve(entry.job))
        else if (isLost(entry)) fail('in vain waited for')
      } catch (error) {
        // The predicate of the caller threw.
        end(() => reject(error))
      }
    }
    for (const entry of ledger.entries()) look(entry)
  })
}

function wantedOf(target: WaitTarget<readonly AnyJob[]>): Wanted {
  if (typeof target === 'function')
    return { is: target, isOne: false, isPredicate: true, what: 'a job that the predicate accepts' }
  if (typeof target === 'object' && target !== null && 'id' in target) {
    return { is: ({ id }) => id === target.id, isOne: true, what: `job ${target.id}` }
  }
  const text = typeof target === 'string' ? target : target?.name
  if (typeof text !== 'string') throw invalidOption('target', target, 'a job, its name, a handle, an id or a predicate')
  const isOne = /^[0-9a-f]{8}-[0-9a-f]{4}-/i.test(text)
  return { is: ({ id, name }) => name === text || id === text.toLowerCase(), isOne, what: `a job ${text}` }
}
