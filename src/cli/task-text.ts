// Tasks and their results, for people.
import { formatDuration } from '../core/duration.ts'
import type { TaskInfo } from '../tasks/desk.ts'
import type { TaskResult } from '../tasks/task.ts'
import type { Output } from './output.ts'
import { rhythm } from './schedule-text.ts'

export function taskTable(tasks: readonly TaskInfo[], out: Output): string {
  return out.table<TaskInfo>(
    [
      { title: 'TASK', of: ({ name, connection }) => (connection === 'default' ? name : `${connection}/${name}`) },
      { title: 'SCHEDULE', of: scheduleOf },
      { title: 'NEXT', of: ({ schedule }) => (schedule?.enabled ? out.time(schedule.nextRunAt) : '-') },
      { title: 'LAST', of: ({ last }) => out.time(last?.startedAtMs ?? null) },
      {
        title: 'RESULT',
        of: stateOf,
        style: ({ last, running }) => (last?.outcome === 'failed' && running === null ? 'red' : undefined),
      },
      { title: 'SAYS', of: saysOf, flex: true },
    ],
    tasks,
  )
}

function scheduleOf({ schedule, fits }: TaskInfo): string {
  if (!fits) return 'not for this store'
  if (schedule === null) return 'none'
  return schedule.enabled ? rhythm(schedule) : 'paused'
}

function stateOf({ last, running }: TaskInfo): string {
  return running === null ? (last?.outcome ?? '-') : 'running'
}

function saysOf({ does, last, running }: TaskInfo): string {
  if (running !== null) return `process ${running.by.pid} on ${running.by.host}`
  if (last === null) return does
  return last.error === null ? (last.result?.summary ?? '') : `${last.error.code}: ${last.error.message}`
}

export function resultText(result: TaskResult, out: Output): string {
  const { outcome, summary, counts, bytes, durationMs, left, warnings, files } = result
  return out.fields([
    ['result', outcome],
    ['summary', summary],
    ['took', formatDuration(durationMs)],
    ...Object.entries(counts).map(([name, count]) => [name, String(count)] as const),
    ...(bytes > 0 ? [['bytes', String(bytes)] as const] : []),
    ...files.map((file) => ['file', file] as const),
    ...(left === null ? [] : [['left', left] as const]),
    ...warnings.map((warning) => ['warning', warning] as const),
  ])
}
