// `millrace status`: all queues at a glance, and whether the system does its work.
import type { Command } from 'commander'
import type { Duration } from '../../core/duration.ts'
import { formatDuration, parseDuration } from '../../core/duration.ts'
import { assertNever } from '../../core/errors.ts'
import { DEFAULTS, LIMITS } from '../../core/limits.ts'
import type { HealthReport } from '../../observability/health.ts'
import { sleep } from '../../runtime/clock.ts'
import { runs, teach } from '../command.ts'
import type { Cli } from '../command.ts'
import { EXIT } from '../exit-codes.ts'
import type { ExitCode } from '../exit-codes.ts'
import { withMill } from '../session.ts'
import type { Session } from '../session.ts'
import { statusText } from '../status-text.ts'

interface StatusFlags {
  readonly watch?: Duration | true
}

const CLEAR = '\u001b[H\u001b[2J'

export function addStatus(program: Command, cli: Cli): void {
  const command = program
    .command('status')
    .summary('all queues at a glance')
    .description(
      'Shows every queue with its jobs and workers, and says whether the system is healthy. It is degraded, and the command ends with 4, when jobs are ready that no live worker serves, when the oldest ready job has waited over an hour, when nobody leads maintenance, or when Redis is down before a PostgreSQL. It ends with 69 when a store does not answer, and with 1 when one refuses to. Warnings are told and change nothing.',
    )
    .option('-w, --watch [time]', `again and again; default every ${formatDuration(DEFAULTS.watchMs)}; Ctrl-C ends it`)
  teach(command, {
    examples: [
      ['status', 'with the configuration of this folder'],
      ['status --watch 5s', 'every five seconds, until Ctrl-C'],
      ['status --postgres postgres://ops@db/app --json', 'without a configuration file, for a script'],
    ],
    exits: ['unmet'],
  })
  runs<StatusFlags>(cli, command, (flags) => {
    const everyMs = flags.watch === undefined ? null : everyOf(flags.watch)
    return withMill(cli.parts, flags, (session) => (everyMs === null ? show(session) : watch(session, cli, everyMs)))
  })
}

export function everyOf(time: Duration | true): number {
  return time === true ? DEFAULTS.watchMs : parseDuration(time, '--watch', { minMs: LIMITS.watchMinMs })
}

async function show({ mill, out, settings }: Session, clear = (): void => undefined): Promise<number> {
  const report = await mill.health.report()
  const { shown, from } = settings.store
  const { state: health, problems, queues, workers, deadLetters, dispatch, servers, leaders, recent, totals } = report
  const store = { shown, from }
  const document = { health, problems, store, queues, workers, deadLetters, dispatch, servers, leaders, recent, totals }
  clear()
  out.show(document, () => statusText(report, store, out))
  return exitOf(report)
}

function exitOf({ state, problems }: HealthReport): ExitCode {
  switch (state) {
    case 'ok':
      return EXIT.done
    case 'degraded':
      return EXIT.unmet
    case 'failed':
      return problems.some(({ code }) => code === 'store-down') ? EXIT.unavailable : EXIT.failed
    default:
      return assertNever(state)
  }
}

/** A store that is away is shown as such, and looked for again. */
async function watch(session: Session, { parts: { io, clock } }: Cli, everyMs: number): Promise<number> {
  const stop = new AbortController()
  const deaf = io.onSignal(() => stop.abort())
  const isScreen = io.stdout.isTty && !session.out.json
  try {
    while (!stop.signal.aborted) {
      await show(session, () => isScreen && io.stdout.write(CLEAR))
      await sleep(clock, everyMs, stop.signal)
    }
    return EXIT.interrupted
  } finally {
    deaf()
  }
}
