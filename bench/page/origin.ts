// When the numbers were made, on what and with which versions, in words; and whether they are worth anything.
import { keeperOf } from '../backends.ts'
import { scenarioOf } from '../plan.ts'
import type { Report, Row } from '../report.ts'

export const RUNS_MIN = 3

export function originOf({ started, ended, machine, node, versions }: Report): string {
  const days = [...new Set([started, ended].map((moment) => moment.slice(0, 10)))].join(' to ')
  const { millrace = 'unknown', ...others } = versions
  const list = Object.entries(others).map(([name, version]) => `${name} ${version}`)
  return (
    `Measured on ${days} on ${machine.cores} × ${machine.cpu}, ${machine.memoryGiB} GiB, ${machine.os}, with Node ${node}, ` +
    `Millrace ${millrace}, ${list.join(', ')}.`
  )
}

/** Undefined if every cell has its runs and its jobs. */
export function warningOf({ results }: Report): string | undefined {
  const thin = results.filter((row) => row.runs < leastRuns(row) || row.jobs < usualJobs(row))
  if (thin.length === 0) return undefined
  return (
    `**These numbers show the form, not the speed:** ${thin.length} of ${results.length} come from fewer than ${RUNS_MIN} runs ` +
    `or from fewer jobs than their scenario asks for.`
  )
}

/** What hardly moves is measured once. */
function leastRuns({ scenario }: Row): number {
  return Math.min(RUNS_MIN, scenarioOf(scenario).runs ?? RUNS_MIN)
}

function usualJobs({ scenario, backend }: Row): number {
  return scenarioOf(scenario).jobs[keeperOf(backend)] ?? 0
}
