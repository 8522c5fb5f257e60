// `millrace work`: runs the jobs of the configuration until it is told to stop.
import type { Command } from 'commander'
import type { Duration } from '../../core/duration.ts'
import { formatDuration, parseDuration } from '../../core/duration.ts'
import { DEFAULTS, LIMITS } from '../../core/limits.ts'
import type { WorkOptions } from '../../works.ts'
import { list, runs, teach, wholeNumber } from '../command.ts'
import type { Cli } from '../command.ts'
import { createLogLines } from '../log-lines.ts'
import { createOpsPort, flaggedHttp, httpOf } from '../ops-port.ts'
import type { HttpFlags } from '../ops-port.ts'
import { openMill, outputOf } from '../session.ts'
import { readSettings } from '../settings.ts'
import { runWorker } from '../worker-run.ts'
import type { WorkerRunReport } from '../worker-run.ts'

export interface WorkFlags {
  readonly queue?: readonly string[]
  readonly concurrency?: number
  readonly memory?: number
  readonly timeout?: Duration
  readonly attempts?: number
  readonly deadline?: Duration
  readonly maxJobs?: number
  readonly verbose?: boolean
}

export function addWork(program: Command, cli: Cli): void {
  const command = program
    .command('work')
    .summary('run jobs until told to stop')
    .description(
      'Runs the jobs of your configuration, and maintenance and schedules with them, until SIGTERM or SIGINT: then it takes no new jobs and waits for running ones. A second signal ends it at once; its jobs are given to others. Log lines go to stderr.',
    )
  workOptions(command)
  command
    .option(
      '--memory <mb>',
      'above this many megabytes: drain, then end with 4, for a supervisor to start anew',
      wholeNumber(1),
    )
    .option(
      '--metrics-port <port>',
      'serve health, metrics and scale signals over HTTP here; 0: any free port; default: http.port of the configuration, else none',
      wholeNumber(0, 65_535),
    )
    .option('--metrics-host <host>', 'the address of that port; default 127.0.0.1, which nobody else can reach')
    .option('-v, --verbose', 'one line per job; otherwise only for those that fail')
    .option('--max-jobs <count>', 'start this many jobs, let them finish, then end with 0', wholeNumber(1))
  teach(command, {
    examples: [
      ['work', 'all queues of all jobs'],
      ['work --queue mail,webhooks --concurrency 50', 'two queues'],
      ['work --memory 512 --max-jobs 10000', 'a fresh process now and then'],
      ['work --metrics-port 9464', 'with /live, /ready, /health, /metrics and /scale on that port'],
      ['work --json', 'one JSON object per log line'],
    ],
    exits: ['unmet', 'timedOut'],
  })
  runs<WorkFlags & HttpFlags>(cli, command, async (flags) => {
    const { io, clock, load } = cli.parts
    const asked = await readSettings(io, flags, { jobs: 'work' }, load)
    const out = outputOf(cli.parts, flags)
    const log = createLogLines(io, { json: out.json, level: 'info', clock })
    const deadlineMs = deadlineOf(flags)
    const work = workOf(asked.work, flags)
    const ops = createOpsPort({ http: httpOf(asked.http, flaggedHttp(flags), io.env), clock, log })
    await ops.start()
    const opened = await openMill(cli.parts, asked, { logger: log }).catch(async (error: unknown) => {
      await ops.stop()
      throw error
    })
    try {
      ops.attach(opened.mill)
      log.info({ store: asked.store.shown, from: asked.store.from }, 'connected')
      const { memory, maxJobs, verbose = false } = flags
      const report = await runWorker({
        mill: opened.mill,
        io,
        clock,
        log,
        work,
        deadlineMs,
        eachJob: verbose,
        onState: (state) => ops.state(state),
        ...(memory !== undefined && { memoryMb: memory }),
        ...(maxJobs !== undefined && { maxJobs }),
      })
      out.show(reportDocument(report), () => '')
      return report.exitCode
    } finally {
      await ops.stop()
      await opened.stop()
    }
  })
}

/** Those that `dev` has as well. */
export function workOptions(command: Command): Command {
  return command
    .option('-q, --queue <list>', 'only these queues; default: those of all jobs', list)
    .option(
      '-c, --concurrency <count>',
      `jobs at once; default ${DEFAULTS.concurrency}`,
      wholeNumber(1, LIMITS.concurrencyMax),
    )
    .option('--timeout <time>', 'the longest a run may take here, whatever the timeout of its job is')
    .option(
      '--attempts <count>',
      'a job that fails here for the nth time has failed for good, whatever its own attempts are',
      wholeNumber(1, LIMITS.attemptsMax),
    )
    .option(
      '--deadline <time>',
      `how long running jobs may go on after a stop was asked for, before they are aborted and given back; default ${formatDuration(DEFAULTS.drainDeadlineMs)}`,
    )
}

export function workOf(
  configured: WorkOptions = {},
  { queue, concurrency, timeout, attempts }: WorkFlags,
): WorkOptions {
  return {
    ...configured,
    ...(queue !== undefined && { queues: queue }),
    ...(concurrency !== undefined && { concurrency }),
    ...(timeout !== undefined && { timeout }),
    ...(attempts !== undefined && { attempts }),
  }
}

export function deadlineOf({ deadline }: WorkFlags): number {
  return deadline === undefined ? DEFAULTS.drainDeadlineMs : parseDuration(deadline, '--deadline')
}

export function reportDocument({ reason, jobs, ranMs, drained }: WorkerRunReport): Readonly<Record<string, unknown>> {
  return { reason, drained, ranMs, jobs }
}
