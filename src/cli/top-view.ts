// What `millrace top` shows, as lines for a screen of a given size: pure. Sections share the height: the queues get what the
// others leave, and every line is cut to the width.
import { readyIn } from '../core/job.ts'
import { formatDuration } from '../core/duration.ts'
import type { HealthReport, QueueHealth } from '../observability/health.ts'
import type { Recent } from '../observability/recent.ts'
import { dispatchText, serverText } from './status-text.ts'
import { painted, renderTable } from './table.ts'
import type { Column, Style } from './table.ts'
import { cellsOf, counted, fit, printable } from './text.ts'

export interface TopWorker {
  readonly id: string
  readonly host: string
  readonly pid: number
  readonly queues: readonly string[]
  readonly running: number
  readonly concurrency: number
  readonly isLive: boolean
  readonly beatMs: number
  readonly blockedMs: number
  /** Known where a supervisor runs it. */
  readonly rssBytes: number | null
  readonly cpuPercent: number | null
  readonly state: string
}

export interface TopFailure {
  readonly at: number
  readonly queue: string
  readonly name: string
  readonly id: string
  readonly message: string
}

/** One look at the store. */
export interface TopFacts {
  readonly report: HealthReport
  readonly workers: readonly TopWorker[]
  readonly failures: readonly TopFailure[]
  /** The time of the store as it was read. */
  readonly nowMs: number
}

export const SORTS = ['ready', 'rate', 'failed', 'oldest', 'name'] as const
export type TopSort = (typeof SORTS)[number]

export interface TopState {
  /** Null until the first look. */
  readonly facts: TopFacts | null
  readonly store: string
  /** The last look failed; the numbers are those of the look before. */
  readonly trouble: { readonly message: string; readonly forMs: number } | null
  readonly everyMs: number
  readonly isPaused: boolean
  readonly isHelp: boolean
  readonly sort: TopSort
  /** Queues that are above the first one shown. */
  readonly scroll: number
}

export interface TopLooks {
  readonly width: number
  readonly height: number
  readonly color: boolean
}

const HELP = [
  'q        quit',
  'p        stop and go on looking',
  's        sort queues by ready, rate, failed, oldest, name',
  'j k ↓ ↑  scroll the queues; PgDn, PgUp by ten; g, G to the ends',
  '?        this help; any key closes it',
  '',
  'IN/S, DONE/S and FAIL/S are of the last ten seconds; RSS and CPU are known of workers that a supervisor runs.',
]
const KEYS = 'q quit  p pause  s sort  ↓↑ scroll  ? help'
const STYLES = { ok: 'green', degraded: 'red', failed: 'red' } as const
const PROBLEMS_MAX = 4
const MEGABYTE = 1024 * 1024

/** As many lines as there are at most `height`, none wider than `width`. */
export function renderTop(state: TopState, looks: TopLooks): readonly string[] {
  const { width, height } = looks
  const paint = (text: string, style: Style | undefined): string => painted(text, style, looks.color)
  const head = headLines(state, paint)
  const foot = [paint(KEYS, 'dim')]
  const room = Math.max(0, height - head.length - foot.length)
  const body = state.isHelp ? ['', ...HELP] : bodyLines(state, { ...looks, height: room })
  const shown = body.slice(0, room)
  // The keys stand at the bottom of a screen; on paper nothing needs filling.
  const fill = Number.isFinite(height) ? Array.from({ length: room - shown.length }, () => '') : []
  return [...head, ...shown, ...fill, ...foot].slice(0, height).map((line) => clip(line, width))
}

/** How far the queues can be scrolled. */
export function scrollMax({ facts }: Pick<TopState, 'facts'>): number {
  return Math.max(0, (facts?.report.queues.length ?? 0) - 1)
}

type Paint = (text: string, style: Style | undefined) => string

function headLines(state: TopState, paint: Paint): readonly string[] {
  const { facts, trouble, store, everyMs, isPaused, sort } = state
  const way = isPaused ? paint('paused', 'yellow') : `every ${formatDuration(everyMs)}`
  const title = `${paint('millrace top', 'bold')}  ${printable(store)}  ${way}  by ${sort}`
  if (facts === null) {
    return [title, trouble === null ? 'looking …' : paint(troubleText(trouble), 'red'), '']
  }
  const { report } = facts
  const verdict = trouble === null ? paint(report.state, STYLES[report.state]) : paint(troubleText(trouble), 'red')
  const lines = [title, `${verdict}  ${totalsText(report)}`, serversText(report)]
  const told = report.problems.slice(0, PROBLEMS_MAX)
  const more = report.problems.length - told.length
  for (const { severity, message } of told)
    lines.push(paint(`! ${printable(message)}`, severity === 'critical' ? 'red' : 'yellow'))
  if (more > 0) lines.push(paint(`! and ${counted(more, 'problem')} more: millrace status`, 'yellow'))
  return [...lines.filter((line) => line !== ''), '']
}

function troubleText({ message, forMs }: NonNullable<TopState['trouble']>): string {
  return `no answer for ${formatDuration(Math.floor(forMs / 1000) * 1000)}: ${printable(message)}`
}

function totalsText({ totals, recent, workers }: HealthReport): string {
  const numbers = [
    `ready ${readyIn(totals)}`,
    `running ${totals.running}`,
    `scheduled ${totals.scheduled}`,
    `blocked ${totals.blocked}`,
    `failed ${totals.failed}`,
  ]
  const rates = `in ${rateText(recent, 'arrived')}/s, done ${rateText(recent, 'completed')}/s`
  return `${numbers.join(', ')}; ${rates}; ${counted(workers.alive, 'worker')}, ${workers.running} of ${workers.slots} slots`
}

function serversText({ servers, dispatch }: HealthReport): string {
  const parts = [...servers.map(serverText), ...(dispatch.length > 0 ? [dispatchText(dispatch)] : [])]
  return parts.join('; ')
}

function bodyLines({ facts, sort, scroll }: TopState, looks: TopLooks): readonly string[] {
  if (facts === null) return []
  const { height } = looks
  const failures = failureLines(facts, looks)
  const workers = workerLines(facts, looks)
  // Queues come first; of the rest each gets at most a third.
  const third = Number.isFinite(height) ? Math.floor(height / 3) : Infinity
  const below = [...cut(workers, third, 'more workers'), ...cut(failures, third, 'more')]
  const room = Number.isFinite(height) ? Math.max(3, height - below.length) : Infinity
  return [...queueLines(facts, sort, scroll, room, looks), ...below]
}

/** A section with its title line; nothing where there is no room for a row. */
function cut(lines: readonly string[], most: number, what: string): readonly string[] {
  if (lines.length <= most) return lines
  if (most < 4) return []
  return [...lines.slice(0, most - 1), `  and ${lines.length - most + 1} ${what}`]
}

function queueLines(facts: TopFacts, sort: TopSort, scroll: number, room: number, looks: TopLooks): readonly string[] {
  const { queues, queuesLeftOut } = facts.report
  if (queues.length === 0) return ['no queues yet', '']
  const sorted = [...queues].sort((a, b) => order(sort, a, b, facts.nowMs))
  const from = Math.min(scroll, Math.max(0, sorted.length - 1))
  const rows = Number.isFinite(room) ? sorted.slice(from, from + Math.max(1, room - 2)) : sorted
  const hidden = sorted.length - rows.length + queuesLeftOut
  const table = tableLines(queueColumns(facts.nowMs), rows, looks)
  return [...table, hidden > 0 ? `  ${counted(hidden, 'queue')} not shown` : '']
}

function order(sort: TopSort, a: QueueHealth, b: QueueHealth, nowMs: number): number {
  const by: Readonly<Record<TopSort, (queue: QueueHealth) => number>> = {
    ready: ({ counts }) => readyIn(counts),
    rate: ({ recent }) => (recent === null ? 0 : recent.completed + recent.failed),
    failed: ({ counts }) => counts.failed,
    oldest: ({ oldestReadyAt }) => (oldestReadyAt === null ? 0 : nowMs - oldestReadyAt.getTime()),
    name: () => 0,
  }
  return by[sort](b) - by[sort](a) || nameOf(a).localeCompare(nameOf(b))
}

function nameOf({ queue, connection }: Pick<QueueHealth, 'queue' | 'connection'>): string {
  return connection === 'default' ? queue : `${connection}/${queue}`
}

const right = { align: 'right' } as const

function queueColumns(nowMs: number): readonly Column<QueueHealth>[] {
  return [
    { title: 'QUEUE', of: nameOf, flex: true },
    { title: 'READY', of: ({ counts }) => readyIn(counts), ...right },
    { title: 'RUN', of: ({ counts }) => counts.running, ...right },
    {
      title: 'FAILED',
      of: ({ counts }) => counts.failed,
      style: ({ counts }) => (counts.failed > 0 ? 'red' : 'dim'),
      ...right,
    },
    { title: 'IN/S', of: ({ recent }) => rateText(recent, 'arrived'), ...right },
    { title: 'DONE/S', of: ({ recent }) => rateText(recent, 'completed'), ...right },
    { title: 'FAIL/S', of: ({ recent }) => rateText(recent, 'failed'), ...right },
    { title: 'OLDEST', of: ({ oldestReadyAt }) => ageText(oldestReadyAt?.getTime() ?? null, nowMs), ...right },
    { title: 'WRK', of: ({ workers }) => workers, ...right },
    { title: '', of: ({ paused }) => (paused ? 'paused' : ''), style: () => 'yellow' },
  ]
}

function workerLines({ workers }: TopFacts, looks: TopLooks): readonly string[] {
  if (workers.length === 0) return ['no workers', '']
  const columns: readonly Column<TopWorker>[] = [
    { title: 'WORKER', of: ({ id }) => id.slice(-12) },
    { title: 'HOST', of: ({ host }) => host, flex: true },
    { title: 'PID', of: ({ pid }) => pid, ...right },
    { title: 'STATE', of: ({ state }) => state, style: ({ isLive }) => (isLive ? undefined : 'red') },
    { title: 'SLOTS', of: ({ running, concurrency }) => `${running}/${concurrency}`, ...right },
    {
      title: 'RSS',
      of: ({ rssBytes }) => (rssBytes === null ? '-' : `${Math.round(rssBytes / MEGABYTE)} MB`),
      ...right,
    },
    { title: 'CPU', of: ({ cpuPercent }) => (cpuPercent === null ? '-' : `${Math.round(cpuPercent)} %`), ...right },
    { title: 'BEAT', of: ({ beatMs }) => formatDuration(Math.max(0, Math.floor(beatMs / 1000)) * 1000), ...right },
    { title: 'QUEUES', of: ({ queues }) => queues.join(','), flex: true },
  ]
  return [...tableLines(columns, workers, looks), '']
}

function failureLines({ failures, nowMs }: TopFacts, looks: TopLooks): readonly string[] {
  if (failures.length === 0) return []
  const columns: readonly Column<TopFailure>[] = [
    { title: 'FAILED', of: ({ at }) => `${ageText(at, nowMs)} ago` },
    { title: 'JOB', of: ({ name }) => name },
    { title: 'QUEUE', of: ({ queue }) => queue },
    { title: 'ID', of: ({ id }) => id },
    { title: 'ERROR', of: ({ message }) => message, flex: true, style: () => 'red' },
  ]
  return tableLines(columns, failures, looks)
}

function tableLines<Row>(columns: readonly Column<Row>[], rows: readonly Row[], looks: TopLooks): readonly string[] {
  return renderTable(columns, rows, { columns: looks.width, color: looks.color }).trimEnd().split('\n')
}

function rateText(recent: Recent | null, of: 'arrived' | 'completed' | 'failed'): string {
  if (recent === null || recent.seconds === 0) return '-'
  const rate = recent[of] / recent.seconds
  return rate >= 100 ? rate.toFixed(0) : rate.toFixed(1)
}

function ageText(atMs: number | null, nowMs: number): string {
  return atMs === null ? '-' : formatDuration(Math.max(0, Math.floor((nowMs - atMs) / 1000)) * 1000)
}

/** Colours take no room: text is cut, and the colour ends with it. */
function clip(line: string, width: number): string {
  // oxlint-disable-next-line no-control-regex -- these are the sequences of table.ts
  const parts = line.split(/(\u001b\[\d+m)/)
  let left = width
  let cutOff = false
  const kept = parts.map((part) => {
    if (part.startsWith('\u001b')) return part
    if (cutOff) return ''
    const shown = fit(part, left)
    cutOff = shown !== part
    left -= cellsOf(shown)
    return shown
  })
  return kept.join('')
}
