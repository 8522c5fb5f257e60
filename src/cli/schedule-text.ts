// Schedules, for people.
import type { Schedule } from '../client/schedules.ts'
import { formatDuration } from '../core/duration.ts'

export function rhythm({ recurrence }: Schedule): string {
  if (recurrence.kind === 'every') return `every ${formatDuration(recurrence.everyMs)}`
  return recurrence.timeZone === 'UTC' ? recurrence.expression : `${recurrence.expression} ${recurrence.timeZone}`
}
