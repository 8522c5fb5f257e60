// What `millrace status` says: the report of health as a table and a few lines.
import { readyIn } from '../core/job.ts'
import { formatDuration } from '../core/duration.ts'
import type { HealthReport, Problem, QueueHealth, SeenDispatch, SeenServer } from '../observability/health.ts'
import type { Output } from './output.ts'
import type { StoreChoice } from './settings.ts'
import { counted, printable } from './text.ts'

const STYLES = { ok: 'green', degraded: 'red', failed: 'red' } as const
const MEGABYTE = 1024 * 1024

export function statusText(report: HealthReport, store: Pick<StoreChoice, 'shown' | 'from'>, out: Output): string {
  const { state, problems, workers: crew, deadLetters, dispatch, servers, queues, queuesLeftOut } = report
  const count = (title: string, of: (queue: QueueHealth) => number) => ({ title, of, align: 'right' }) as const
  const table = out.table<QueueHealth>(
    [
      { title: 'QUEUE', of: nameOf },
      count('READY', ({ counts }) => readyIn(counts)),
      count('RUNNING', ({ counts }) => counts.running),
      count('SCHEDULED', ({ counts }) => counts.scheduled),
      count('BLOCKED', ({ counts }) => counts.blocked),
      count('COMPLETED', ({ counts }) => counts.completed),
      { ...count('FAILED', ({ counts }) => counts.failed), style: ({ counts }) => (counts.failed > 0 ? 'red' : 'dim') },
      { title: 'OLDEST READY', of: ({ oldestReadyAt }) => out.time(oldestReadyAt) },
      { title: 'WORKERS', of: ({ workers }) => workers, align: 'right' },
      { title: '', of: ({ paused }) => (paused ? 'paused' : ''), style: () => 'yellow' },
    ],
    queues,
  )
  const workers = `${counted(crew.alive, 'live worker')}, ${crew.running} of ${crew.slots} slots busy${crew.silent > 0 ? `, ${crew.silent} silent` : ''}`
  const lines = [
    ...(queuesLeftOut > 0 ? [`and ${counted(queuesLeftOut, 'quiet queue')} more`] : []),
    `${out.paint(state, STYLES[state])}  ${workers}, ${counted(deadLetters, 'dead letter')}`,
    ...problems.map((problem) => `  ${problemText(problem, out)}`),
    ...(dispatch.length > 0 ? [dispatchText(dispatch)] : []),
    ...(servers.length > 0 ? [`servers: ${servers.map(serverText).join('; ')}`] : []),
    `store: ${store.shown} (${store.from})`,
  ]
  return `${queues.length === 0 ? 'no queues yet\n' : table}\n${lines.join('\n')}\n`
}

function nameOf({ queue, connection }: Pick<QueueHealth, 'queue' | 'connection'>): string {
  return connection === 'default' ? queue : `${connection}/${queue}`
}

function problemText({ severity, message }: Problem, out: Output): string {
  const text = printable(message)
  return severity === 'warning' ? out.paint(`warning: ${text}`, 'yellow') : text
}

/** `PostgreSQL db:5432 1 ms, 12 clients`. */
export function serverText({ kind, name, pingMs, clients, memory }: SeenServer): string {
  const title = `${kind === 'redis' ? 'Redis' : 'PostgreSQL'} ${name}`
  if (pingMs === null) return `${title} does not answer`
  const facts = [`${title} ${Math.max(1, Math.round(pingMs))} ms`]
  if (clients !== undefined) facts.push(counted(clients, 'client'))
  if (memory !== undefined) {
    const used = Math.round(memory.usedBytes / MEGABYTE)
    facts.push(`${used} ${memory.maxBytes === null ? '' : `of ${Math.round(memory.maxBytes / MEGABYTE)} `}MB`)
  }
  return facts.join(', ')
}

/** Redis before PostgreSQL: what it has, and what it does not have yet. */
export function dispatchText(dispatch: readonly SeenDispatch[]): string {
  const sum = (of: (one: SeenDispatch) => number | null): number =>
    dispatch.reduce((all, one) => all + (of(one) ?? 0), 0)
  const fromLedger = dispatch.filter(({ mode }) => mode === 'ledger').map(nameOf)
  const mode = fromLedger.length === 0 ? 'tokens' : `tokens, but from PostgreSQL alone: ${fromLedger.join(', ')}`
  const lagMs = dispatch.reduce((most, { relayLagMs }) => Math.max(most, relayLagMs ?? 0), 0)
  const isAway = dispatch.some(({ waiting }) => waiting === null)
  const inRedis = isAway
    ? 'Redis does not answer'
    : `${sum(({ waiting }) => waiting)} waiting, ${sum(({ inFlight }) => inFlight)} in flight`
  const lag = isAway ? '' : `, relay lag ${formatDuration(Math.round(lagMs))}`
  return `dispatch: ${mode}; ${inRedis}, ${sum(({ backlog }) => backlog)} in PostgreSQL${lag}`
}
