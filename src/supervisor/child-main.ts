// The entry of a child process: it waits for its orders, loads the same configuration as its supervisor and works.
//
// Signals of a terminal reach every process of its group: they are for the supervisor, and ignored here. SIGTERM drains, for
// whoever sends it to one process or, as systemd does, to all of them; the word of the supervisor may still make it sooner.
import { EXIT, exitOf } from '../cli/exit-codes.ts'
import { describeError } from '../cli/cli-error.ts'
import type { CliIo, Screen } from '../cli/io.ts'
import { createLogLines } from '../cli/log-lines.ts'
import { startEmbedded } from '../cli/servers.ts'
import { openMill } from '../cli/session.ts'
import { readSettings } from '../cli/settings.ts'
import { logJobs } from '../cli/worker-run.ts'
import type { AnyJob } from '../core/definition.ts'
import { bounded } from '../runtime/bounded.ts'
import { systemClock } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import { startProcessMeter } from '../runtime/process-meter.ts'
import { ChildControl, runChild } from './child-run.ts'
import type { ChildOrders, FromChild, ToChild } from './messages.ts'

/** After the deadline of its jobs: for the last words to the store. */
const LAST_WORDS_MS = 5_000

const clock = systemClock
const control = new ChildControl(clock)
let drainMs = 0

for (const signal of ['SIGINT', 'SIGHUP', 'SIGTSTP', 'SIGQUIT'] as const) process.on(signal, () => undefined)
process.on('SIGTERM', () => control.leave('SIGTERM', drainMs))
process.on('disconnect', () => control.leave('the supervisor is gone', drainMs))
process.on('message', (message: unknown) => {
  const told = message as ToChild // sent by the supervisor
  if (told.kind === 'begin') void main(told.orders)
  else control.tell(told)
})
send({ kind: 'hello' })
// Nobody has given it orders, so there is nothing to be done in order.
void control.leaving.then(() => void (drainMs === 0 && process.exit(EXIT.interrupted)))

function send(message: FromChild): void {
  if (process.connected) process.send?.(message, () => undefined)
}

async function main(orders: ChildOrders): Promise<void> {
  drainMs = Math.max(1, orders.drainMs)
  const { source, pool, id } = orders
  const stderr = screen(process.stderr)
  const io: Pick<CliIo, 'cwd' | 'env' | 'stderr'> = { cwd: source.cwd, env: process.env, stderr }
  const log = within(createLogLines(io, { json: source.json, level: 'info', clock }), { pool, child: id })
  try {
    process.exit((await work(orders, io, log)) ? EXIT.done : EXIT.timedOut)
  } catch (error) {
    const { code, message } = describeError(error)
    log.error({ code, error: message }, 'worker process failed')
    process.exit(exitOf(code))
  }
}

async function work(orders: ChildOrders, io: Pick<CliIo, 'cwd' | 'env'>, log: Logger): Promise<boolean> {
  const { source, concurrency, timeoutMs, attempts } = orders
  const settings = await readSettings(io, source.flags, { jobs: 'supervise', embedded: true })
  const queues = orders.queues ?? settings.work?.queues ?? queuesOf(settings.options.jobs)
  const options = source.maintenance ? settings.options : { ...settings.options, maintenance: false }
  const opened = await openMill({ startEmbedded }, { ...settings, options }, { logger: log })
  const meter = startProcessMeter(clock)
  logJobs(opened.mill, log, source.verbose)
  try {
    return await runChild({
      mill: opened.mill,
      metrics: () => opened.mill.metrics.snapshot(),
      clock,
      meter,
      control,
      send,
      isQuiet: orders.isQuiet,
      work: {
        ...settings.work,
        ...(queues.length > 0 && { queues }),
        ...(concurrency !== null && { concurrency }),
        ...(timeoutMs !== null && { timeout: timeoutMs }),
        ...(attempts !== null && { attempts }),
      },
    })
  } finally {
    meter.stop()
    await bounded(clock, LAST_WORDS_MS, 'the end of the worker process', opened.stop()).catch((error: unknown) =>
      log.warn({ error }, 'the worker process could not close everything'),
    )
  }
}

/** Those of the user: built-in tasks and notices run in the supervisor. */
function queuesOf(jobs: readonly Pick<AnyJob, 'queue'>[]): readonly string[] {
  return [...new Set(jobs.map(({ queue }) => queue))]
}

function within(log: Logger, facts: Readonly<Record<string, unknown>>): Logger {
  const at = (level: keyof Logger) => (fields: Readonly<Record<string, unknown>>, message: string) =>
    log[level]({ ...facts, ...fields }, message)
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

function screen(stream: NodeJS.WriteStream): Screen {
  return { write: (text) => void stream.write(text), isTty: stream.isTTY, columns: 80 }
}
