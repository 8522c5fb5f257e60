// Acting on many jobs: those named by id, or all that a filter finds. What is meant is settled first, then
// counted, then asked about, then done, and nothing but that is touched.
import type { Command } from 'commander'
import type { Job } from '../client/job-view.ts'
import { LIMITS } from '../core/limits.ts'
import { CliError } from './cli-error.ts'
import { wholeNumber } from './command.ts'
import type { ConsentFlags } from './command.ts'
import type { Picked } from './job-filter-flags.ts'

export interface BulkFlags extends ConsentFlags {
  readonly all?: boolean
  readonly limit?: number
}

/** Calls that take one job at a time are made this many at a time. */
const AT_ONCE = 20

export function bulkOptions(command: Command): Command {
  return command
    .option('--all', 'every one there is; without ids and without this at least one filter is needed')
    .option('-l, --limit <count>', `how many at most, up to ${LIMITS.bulkJobsMax}`, wholeNumber(1, LIMITS.bulkJobsMax))
}

/** Nobody should cancel everything because a shell variable was empty. */
export function checkChoice(ids: readonly string[], filter: object, { all = false }: BulkFlags, verb: string): void {
  // A connection says where, not which.
  const filters = Object.keys(filter).filter((name) => name !== 'connection')
  const named = [ids.length > 0, filters.length > 0, all].filter(Boolean).length
  if (named === 0) {
    throw new CliError('USAGE', `say which jobs to ${verb}: ids, a filter such as --queue mail, or --all`)
  }
  if (ids.length > 0 && named > 1) {
    throw new CliError('USAGE', `name the jobs to ${verb} by their ids or by a filter, not both`)
  }
}

export function howMany({ jobs, more }: Picked): string {
  return `${jobs.length} ${jobs.length === 1 ? 'job' : 'jobs'}${more ? ' (there are more; repeat the command for the rest)' : ''}`
}

/** In the order given. */
export async function forEachJob<Answer>(
  jobs: readonly Pick<Job, 'id' | 'connection'>[],
  act: (job: Pick<Job, 'id' | 'connection'>) => Promise<Answer>,
): Promise<readonly Answer[]> {
  const answers: Answer[] = []
  for (let at = 0; at < jobs.length; at += AT_ONCE) {
    answers.push(...(await Promise.all(jobs.slice(at, at + AT_ONCE).map(act))))
  }
  return answers
}

/** How often each answer was given: `3 cancelled, 1 requested`. */
export function tally(answers: readonly string[]): string {
  const counts = new Map<string, number>()
  for (const answer of answers) counts.set(answer, (counts.get(answer) ?? 0) + 1)
  return [...counts].map(([answer, count]) => `${count} ${answer}`).join(', ')
}
