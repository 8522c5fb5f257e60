// `millrace status`: all queues at a glance, and whether the system does its work.
import type { Command } from 'commander'
import { formatDuration } from '../../core/duration.ts'
import { runs, teach } from '../command.ts'
import type { Cli } from '../command.ts'
import { EXIT } from '../exit-codes.ts'
import { decideHealth } from '../health.ts'
import type { Health, QueueHealth } from '../health.ts'
import type { Output } from '../output.ts'
import { isLive } from '../reads.ts'
import type { SeenDispatch, SeenWorker } from '../reads.ts'
import { withMill } from '../session.ts'
import type { Session } from '../session.ts'
import type { Settings } from '../settings.ts'
import { counted } from '../text.ts'

export function addStatus(program: Command, cli: Cli): void {
  const command = program
    .command('status')
    .summary('all queues at a glance')
    .description(
      'Shows every queue with its jobs and workers, and says whether the system is healthy. It is degraded, and the command ends with 4, when jobs are ready that no live worker serves, or when the oldest ready job has waited over an hour.',
    )
  teach(command, {
    examples: [
      ['status', 'with the configuration of this folder'],
      ['status --postgres postgres://ops@db/app --json', 'without a configuration file, for a script'],
    ],
    exits: ['unmet'],
  })
  runs(cli, command, (flags) => withMill(cli.parts, flags, (session) => status(session, cli)))
}

async function status({ mill, reads, out, settings }: Session, cli: Cli): Promise<number> {
  const [queues, counts, workers, clock, dispatch] = await Promise.all([
    mill.queues.list(),
    mill.jobs.counts(),
    reads.workers(),
    reads.clock(),
    reads.dispatching(),
  ])
  const nowMs = clock?.nowMs ?? cli.parts.clock.nowMs()
  const health = decideHealth({ queues, counts, workers, nowMs })
  const crew = crewOf(workers, nowMs)
  const deadLetters = health.queues.reduce((sum, queue) => sum + queue.counts.failed, 0)
  const { shown, from } = settings.store
  const document = {
    health: health.state,
    problems: health.problems,
    store: { shown, from },
    queues: health.queues,
    workers: crew,
    deadLetters,
    dispatch,
  }
  out.show(document, () => statusText(health, crew, deadLetters, dispatch, settings, out))
  return health.state === 'ok' ? EXIT.done : EXIT.unmet
}

interface Crew {
  readonly alive: number
  readonly silent: number
  readonly slots: number
  readonly running: number
}

function crewOf(workers: readonly SeenWorker[], nowMs: number): Crew {
  const live = workers.filter((worker) => isLive(worker, nowMs))
  return {
    alive: live.length,
    silent: workers.filter((worker) => worker.state === 'alive').length - live.length,
    slots: live.reduce((sum, { concurrency }) => sum + concurrency, 0),
    running: live.reduce((sum, { running }) => sum + running, 0),
  }
}

/** Redis before PostgreSQL: what it has, and what it does not have yet. */
function dispatchText(dispatch: readonly SeenDispatch[]): string {
  const sum = (of: (one: SeenDispatch) => number | null): number =>
    dispatch.reduce((all, one) => all + (of(one) ?? 0), 0)
  const nameOf = ({ connection, queue }: SeenDispatch) => (connection === 'default' ? queue : `${connection}/${queue}`)
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

function statusText(
  health: Health,
  crew: Crew,
  deadLetters: number,
  dispatch: readonly SeenDispatch[],
  { store }: Settings,
  out: Output,
): string {
  const count = (title: string, of: (queue: QueueHealth) => number) => ({ title, of, align: 'right' }) as const
  const table = out.table<QueueHealth>(
    [
      { title: 'QUEUE', of: ({ queue, connection }) => (connection === 'default' ? queue : `${connection}/${queue}`) },
      count('READY', ({ counts }) => counts.queued + counts.dispatched),
      count('RUNNING', ({ counts }) => counts.running),
      count('SCHEDULED', ({ counts }) => counts.scheduled),
      count('BLOCKED', ({ counts }) => counts.blocked),
      count('COMPLETED', ({ counts }) => counts.completed),
      { ...count('FAILED', ({ counts }) => counts.failed), style: ({ counts }) => (counts.failed > 0 ? 'red' : 'dim') },
      { title: 'OLDEST READY', of: ({ oldestReadyAt }) => out.time(oldestReadyAt) },
      { title: 'WORKERS', of: ({ workers }) => workers, align: 'right' },
      { title: '', of: ({ paused }) => (paused ? 'paused' : ''), style: () => 'yellow' },
    ],
    health.queues,
  )
  const verdict = health.state === 'ok' ? out.paint('ok', 'green') : out.paint('degraded', 'red')
  const workers = `${counted(crew.alive, 'live worker')}, ${crew.running} of ${crew.slots} slots busy${crew.silent > 0 ? `, ${crew.silent} silent` : ''}`
  const lines = [
    `${verdict}  ${workers}, ${counted(deadLetters, 'dead letter')}`,
    ...health.problems.map(({ message }) => `  ${message}`),
    ...(dispatch.length > 0 ? [dispatchText(dispatch)] : []),
    `store: ${store.shown} (${store.from})`,
  ]
  return `${health.queues.length === 0 ? 'no queues yet\n' : table}\n${lines.join('\n')}\n`
}
