// The live table: a pure function from a snapshot to text that fits the terminal. Colours are added last, so
// that widths are counted on what is seen.
import type { JobStatus } from '../../src/index.ts'
import { seconds } from './watch.ts'
import type { Happening, QueueRow, RunningRow, Snapshot } from './watch.ts'

export interface ScreenOptions {
  readonly columns: number
  readonly rows: number
  readonly color: boolean
}

type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan'
type Span = string | readonly [text: string, style: Style]
type Line = readonly Span[]

const CODES: Readonly<Record<Style, number>> = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 }

/** `dispatched` belongs to a backend that this demo does not use. */
const STATUSES = ['scheduled', 'queued', 'blocked', 'running', 'completed', 'failed', 'cancelled'] as const
const STATUS_STYLES: Partial<Record<JobStatus, Style>> = { running: 'cyan', completed: 'green', failed: 'red' }
const RUNNING_MAX = 6
const DEAD_MAX = 3
const HAPPENINGS_MAX = 8
/** With fewer rows there are no blank lines. */
const ROWS_COMFORTABLE = 30
const BAR_CELLS = 20
const SPARKS = '▁▂▃▄▅▆▇█'
const KIND_STYLES: Readonly<Record<Happening['kind'], Style>> = {
  note: 'dim',
  tick: 'dim',
  done: 'green',
  retried: 'yellow',
  failed: 'red',
}

/** At most `rows` lines of at most `columns` characters, without a line break at the end. */
export function renderScreen(snapshot: Snapshot, { columns, rows, color }: ScreenOptions): string {
  const small = rows < ROWS_COMFORTABLE
  const gap: Line[] = small ? [] : [[]]
  const top = [title(snapshot, columns), ...gap, ...queueTable(snapshot.queues), ...gap, speed(snapshot)]
  const above = [...top, ...groups(snapshot), ...gap]
  const dead = deadLetters(snapshot, small ? 1 : DEAD_MAX)
  const left = Math.max(0, rows - above.length - dead.length)
  const running = runningJobs(snapshot.running, Math.min(RUNNING_MAX, Math.max(1, Math.ceil(left / 2) - 1)))
  const latest = happenings(snapshot.happenings, Math.min(HAPPENINGS_MAX, left - running.length - 1))
  return [...above, ...running, ...dead, ...latest]
    .slice(0, rows)
    .map((line) => paint(line, columns, color))
    .join('\n')
}

/** The counts alone, for the end of a run. */
export function renderCounts(queues: readonly QueueRow[], options: Omit<ScreenOptions, 'rows'>): string {
  return queueTable(queues)
    .map((line) => paint(line, options.columns, options.color).trimEnd())
    .join('\n')
}

function title({ store, elapsedMs }: Snapshot, columns: number): Line {
  const right = `${seconds(elapsedMs)} · Ctrl-C stops`
  return [['Millrace', 'bold'], ` ${fit(`on ${store}`, Math.max(1, columns - 10 - right.length))} `, [right, 'dim']]
}

function queueTable(queues: readonly QueueRow[]): Line[] {
  const total = (status: JobStatus): number => queues.reduce((sum, { counts }) => sum + counts[status], 0)
  const row = (name: string, countOf: (status: JobStatus) => number, limit: string): Line => [
    name.padEnd(8),
    ...STATUSES.map((status): Span => cell(countOf(status), status)),
    [limit === '' ? '' : `  ${limit}`, 'dim'],
  ]
  const header = `${'queue'.padEnd(8)}${STATUSES.map((status) => ` ${status}`).join('')}`
  return [
    [[header, 'dim']],
    ...queues.map(({ name, counts, limit }) => row(name, (status) => counts[status], limit)),
    row('total', total, ''),
  ]
}

function cell(count: number, status: JobStatus): Span {
  const text = String(count).padStart(status.length + 1)
  return count === 0 ? [text, 'dim'] : [text, STATUS_STYLES[status] ?? 'bold']
}

function speed({ perSecond, retries }: Snapshot): Line {
  const whole = perSecond.slice(0, -1)
  const recent = whole.slice(-3)
  const rate = recent.length === 0 ? 0 : recent.reduce((sum, count) => sum + count, 0) / recent.length
  const max = Math.max(1, ...whole)
  const line = whole.map((count) => SPARKS[Math.min(7, Math.floor((count / max) * 7.99))]).join('')
  return ['throughput  ', [`${rate.toFixed(1)} jobs/s`, 'bold'], `  ${line}  `, [`${retries} retries`, 'yellow']]
}

function groups({ batch, schedule }: Snapshot): Line[] {
  const lines: Line[] = []
  if (batch !== null) {
    const { total, pending, completed, failed } = batch.progress
    const ended = `${total - pending} of ${total}, ${completed} completed${failed > 0 ? `, ${failed} failed` : ''}`
    lines.push([`batch       ${fit(batch.name, 12)} `, bar(total === 0 ? 0 : 1 - pending / total), ` ${ended}`])
  }
  if (schedule !== null) {
    const next = schedule.nextInMs === null ? 'paused' : `next tick in ${seconds(Math.max(0, schedule.nextInMs))}`
    lines.push([
      `schedule    ${fit(schedule.name, 12)} ${next}, ${schedule.ticks} ${schedule.ticks === 1 ? 'tick' : 'ticks'} so far`,
    ])
  }
  return lines
}

function runningJobs(running: readonly RunningRow[], max: number): Line[] {
  const shown = running.slice(0, max)
  const more = running.length - shown.length
  return [
    [['running', 'dim'], more > 0 ? ` ${running.length}, ${more} not shown` : ` ${running.length}`],
    ...shown.map(({ name, attempt, maxAttempts, percent, ranMs }): Line => {
      const facts = `  ${fit(name, 16)} attempt ${attempt}/${maxAttempts} ${seconds(ranMs).padStart(6)}  `
      return percent === null ? [facts] : [facts, bar(percent / 100), ` ${String(percent).padStart(3)} %`]
    }),
  ]
}

function deadLetters({ deadLetters: dead, queues }: Snapshot, max: number): Line[] {
  const count = queues.reduce((sum, { counts }) => sum + counts.failed, 0)
  return [
    [['dead letters', 'dim'], ` ${count}`],
    ...dead
      .slice(0, max)
      .map(({ name, error, attempts }): Line => [
        `  ${fit(name, 16)} `,
        [error, 'red'],
        [` (${attempts} ${attempts === 1 ? 'attempt' : 'attempts'})`, 'dim'],
      ]),
  ]
}

function happenings(list: readonly Happening[], max: number): Line[] {
  if (max < 1) return []
  const lines = list.slice(-max).map(({ atMs, kind, text }): Line => {
    return [[`${seconds(atMs).padStart(8)}  `, 'dim'], [`${kind.padEnd(8)}`, KIND_STYLES[kind]], text]
  })
  return [[['last events', 'dim']], ...lines]
}

function bar(share: number): Span {
  const full = Math.round(Math.min(1, Math.max(0, share)) * BAR_CELLS)
  return ['█'.repeat(full) + '░'.repeat(BAR_CELLS - full), 'cyan']
}

function fit(text: string, columns: number): string {
  return text.length > columns ? `${text.slice(0, columns - 1)}…` : text.padEnd(columns)
}

function paint(line: Line, columns: number, color: boolean): string {
  let left = columns
  let painted = ''
  for (const span of line) {
    const [text, style] = typeof span === 'string' ? [span, undefined] : span
    const visible = text.slice(0, left)
    left -= visible.length
    painted += color && style !== undefined && visible !== '' ? `\u001b[${CODES[style]}m${visible}\u001b[0m` : visible
  }
  return painted
}
