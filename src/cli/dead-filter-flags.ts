// Flags that pick dead letters: those of any job but the status, and how long ago it failed.
import type { Command } from 'commander'
import type { DeadLetterFilter } from '../client/dead-letters.ts'
import type { Duration } from '../core/duration.ts'
import { filterOptions, toFilter } from './job-filter-flags.ts'
import type { FilterFlags } from './job-filter-flags.ts'

export type DeadFlags = FilterFlags & { readonly olderThan?: Duration }

export function deadFilterOptions(command: Command): Command {
  return filterOptions(command, { status: false }).option('--older-than <time>', 'failed at least this long ago')
}

export function toDeadFilter(flags: DeadFlags, nowMs: number): DeadLetterFilter {
  const { status: _, ...filter } = toFilter(flags, nowMs)
  return { ...filter, ...(flags.olderThan !== undefined && { olderThan: flags.olderThan }) }
}
