// Jobs and expectations as text, for the messages of failing tests.
import type { Job } from '../client/job-view.ts'
import { formatDuration } from '../core/duration.ts'
import { shownValue } from './match.ts'
import type { Entry } from './ledger.ts'

const LISTED_MAX = 10
const DIFFERENCES_MAX = 5

export function describeStatus({ job, delayMs }: Entry): string {
  const waits = job.waitsFor === null ? '' : `, waits for ${job.waitsFor}`
  const error = job.lastError === null ? '' : `, ${job.lastError.name}: ${job.lastError.message}`
  const delay = delayMs === 0 ? '' : `, delay ${formatDuration(delayMs)}`
  return `${job.status} on ${job.queue}, priority ${job.priority}${delay}${waits}${error}`
}

/** One numbered line per job; below it, where it differs from what was asked for. */
export function describeJobs(
  entries: readonly Entry[],
  differencesOf: (entry: Entry) => readonly string[] = () => [],
): string {
  const lines = entries.slice(0, LISTED_MAX).flatMap((entry, index) => {
    return [
      `  ${index + 1}. ${entry.job.name} ${shownValue(entry.job.payload)} (${describeStatus(entry)})`,
      ...differencesOf(entry)
        .slice(0, DIFFERENCES_MAX)
        .map((difference) => `       ${difference}`),
    ]
  })
  if (entries.length > LISTED_MAX) lines.push(`  … and ${entries.length - LISTED_MAX} more`)
  return lines.join('\n')
}

/** `2 × send-mail, 1 × charge` */
export function describeKinds(jobs: readonly Job[]): string {
  const counts = new Map<string, number>()
  for (const { name } of jobs) counts.set(name, (counts.get(name) ?? 0) + 1)
  return [...counts].map(([name, count]) => `${count} × ${name}`).join(', ')
}
