// `millrace supervise`: pools of worker processes that are kept alive, until it is told to stop.
import type { Command } from 'commander'
import type { Duration } from '../../core/duration.ts'
import { formatDuration, parseDuration } from '../../core/duration.ts'
import { DEFAULTS, LIMITS } from '../../core/limits.ts'
import type { Logger } from '../../runtime/logger.ts'
import { createSupervisor } from '../../supervisor/create-supervisor.ts'
import type { RunningSupervisor } from '../../supervisor/create-supervisor.ts'
import { DEFAULT_POOL } from '../../supervisor/pool-options.ts'
import type { PoolConfig } from '../../supervisor/pool-options.ts'
import { list, runs, teach, wholeNumber } from '../command.ts'
import type { Cli } from '../command.ts'
import { EXIT } from '../exit-codes.ts'
import type { ExitCode } from '../exit-codes.ts'
import type { CliIo } from '../io.ts'
import { createLogLines } from '../log-lines.ts'
import { outputOf } from '../session.ts'
import type { GlobalFlags } from '../settings.ts'

interface SuperviseFlags extends GlobalFlags {
  readonly queue?: readonly string[]
  readonly processes?: number
  readonly concurrency?: number
  readonly memory?: number
  readonly deadline?: Duration
  readonly verbose?: boolean
}

export function addSupervise(program: Command, cli: Cli): void {
  const command = program
    .command('supervise')
    .summary('keep pools of worker processes alive')
    .description(
      'Starts the pools of worker processes of your configuration, or one pool of all queues, and keeps them alive: those that crash, hang or grow too large are replaced. It runs maintenance and schedules itself. SIGTERM or SIGINT: drain and end, a second one at once. SIGHUP: restart one process after the other. SIGTSTP: take no new jobs. SIGCONT: take jobs again. Log lines go to stderr.',
    )
    .option(
      '-p, --processes <count>',
      'one pool of so many processes, whatever the configuration says',
      wholeNumber(1, LIMITS.processesMax),
    )
    .option('-q, --queue <list>', 'one pool for these queues, whatever the configuration says', list)
    .option(
      '-c, --concurrency <count>',
      'jobs at once in each process of that pool',
      wholeNumber(1, LIMITS.concurrencyMax),
    )
    .option(
      '--memory <mb>',
      `above this many megabytes a process of that pool drains and is replaced; default ${DEFAULTS.poolMemoryMb}`,
      wholeNumber(1, LIMITS.memoryMbMax),
    )
    .option(
      '--deadline <time>',
      `how long running jobs may go on after a stop was asked for, before they are given back; default ${formatDuration(DEFAULTS.supervisorDrainMs)}`,
    )
    .option('-v, --verbose', 'one line per job; otherwise only for those that fail')
  teach(command, {
    examples: [
      ['supervise', 'the pools of the configuration'],
      ['supervise --processes 4 --concurrency 20', 'one pool of all queues'],
      ['supervise --json', 'one JSON object per log line'],
    ],
    exits: ['timedOut'],
  })
  runs<SuperviseFlags>(cli, command, async (flags) => {
    const { io, clock } = cli.parts
    const out = outputOf(cli.parts, flags)
    const log = createLogLines(io, { json: out.json, level: 'info', clock })
    const { deadline, verbose = false, config, postgres, redis, schema } = flags
    if (deadline !== undefined) parseDuration(deadline, '--deadline')
    const pools = poolsOf(flags)
    const supervisor = await createSupervisor({
      cwd: io.cwd,
      logger: log,
      json: out.json,
      verbose,
      ...(pools !== undefined && { pools }),
      ...(deadline !== undefined && { supervise: { drainDeadline: deadline } }),
      ...(config !== undefined && { config }),
      ...(postgres !== undefined && { postgres }),
      ...(redis !== undefined && { redis }),
      ...(schema !== undefined && { schema }),
    })
    const code = await untilStopped(supervisor, io, log)
    const { id, startedAtMs } = supervisor.status()
    out.show({ supervisor: id, startedAt: new Date(startedAtMs) }, () => '')
    return code
  })
}

function poolsOf({ queue, processes, concurrency, memory }: SuperviseFlags): Record<string, PoolConfig> | undefined {
  if (queue === undefined && processes === undefined && concurrency === undefined && memory === undefined) {
    return undefined
  }
  return {
    [DEFAULT_POOL]: {
      ...(queue !== undefined && { queues: queue }),
      ...(processes !== undefined && { processes }),
      ...(concurrency !== undefined && { concurrency }),
      ...(memory !== undefined && { memoryMb: memory }),
    },
  }
}

/** Signals, until the last process has gone. */
async function untilStopped(
  supervisor: RunningSupervisor,
  io: Pick<CliIo, 'onSignal' | 'onControlSignal'>,
  log: Logger,
): Promise<ExitCode> {
  let killing: Promise<void> | undefined
  let wasCutOff = false
  supervisor.on('exited', ({ code, signal, reason }) => {
    if (reason === 'stop' && (signal === 'SIGKILL' || code === EXIT.timedOut)) wasCutOff = true
  })
  let signals = 0
  const offs = [
    io.onSignal((signal) => {
      signals += 1
      if (signals === 1) {
        log.info({}, `${signal}: processes take no new jobs and finish running ones; once more ends at once`)
        void supervisor.stop()
      } else if (killing === undefined) {
        log.warn({}, `${signal} again: ends at once; the jobs are given to others`)
        killing = supervisor.kill()
      }
    }),
    io.onControlSignal((signal) => {
      try {
        if (signal === 'SIGTSTP') supervisor.quiet()
        else if (signal === 'SIGCONT') {
          // Also whoever was stopped by a debugger is continued.
          if (supervisor.status().state === 'quiet') supervisor.resume()
        } else {
          log.info({}, 'SIGHUP: processes are restarted one after the other')
          supervisor.restart().then(
            (replaced) => log.info({ replaced }, 'all processes are restarted'),
            (error: unknown) => log.error({ error }, 'the restart did not succeed'),
          )
        }
      } catch (error) {
        log.warn({ error }, `${signal} is too late`)
      }
    }),
  ]
  await supervisor.stopped
  await killing
  for (const off of offs) off()
  if (killing !== undefined) return EXIT.interrupted
  return wasCutOff ? EXIT.timedOut : EXIT.done
}
