// `npm start`: Millrace at work on the memory backend. A live table on a terminal, plain lines elsewhere; ends
// with Ctrl-C, or with `--once` by itself after one round whose counts are checked.
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { differences, readOutcome, summaryLines } from './outcome.ts'
import { countsLine, happeningLine } from './plain.ts'
import { renderCounts, renderScreen } from './screen.ts'
import { Terminal } from './terminal.ts'
import { watch } from './watch.ts'
import type { Snapshot, Watch } from './watch.ts'
import { CONCURRENCY, SCHEDULE, createDemoMill, enqueueRound, keepBusy } from './workload.ts'
import type { DemoMill, Round } from './workload.ts'

const USAGE = `npm start -- [options]

  --once    one round of jobs, then check the counts and end: exit 0, or 1 if they are wrong
  --plain   lines instead of the live table (the default when the output is not a terminal)
  --help    show this

Ctrl-C stops gracefully: running jobs finish, the others stay where they are. NO_COLOR is respected.`

const FRAME_MS = 100
const COUNTS_MS = 1_000
const ROUND_MAX_MS = 18_000
/** One Ctrl-C can arrive twice: from the terminal and passed on by npm. */
const SAME_SIGNAL_MS = 500

async function main(options: Options): Promise<number> {
  const terminal = new Terminal(options.plain)
  const stopping = stopSignal(terminal)
  const mill = await createDemoMill()
  const view = watch(mill, terminal.live ? undefined : (happening) => terminal.print(happeningLine(happening)))
  const worker = await mill.work({ concurrency: CONCURRENCY })
  view.note(`a worker with ${CONCURRENCY} slots has started`)
  const drawing = new AbortController()
  const drawn = draw(terminal, view, drawing.signal)
  let round: Round | null = null
  try {
    round = await enqueueRound(mill)
    view.note('a round of jobs is enqueued')
    view.follow(round.batch)
    if (options.once) await untilFinal(mill, stopping)
    else await keepBusy(mill, stopping, (batch) => view.follow(batch))
  } finally {
    if (stopping.aborted) view.note('stopping: running jobs finish, nothing new starts')
    await worker.stop({ deadline: '8s' })
    drawing.abort()
    await drawn
    terminal.restore()
  }
  const exitCode = await report(mill, view, round, terminal, options.once && !stopping.aborted)
  await mill.stop()
  return options.once && stopping.aborted ? 130 : exitCode
}

/** Prints how things stand at the end; the exit code. */
async function report(mill: DemoMill, view: Watch, round: Round, terminal: Terminal, check: boolean): Promise<number> {
  const snapshot = await view.snapshot()
  terminal.print(`\n${renderCounts(snapshot.queues, terminal.size())}`)
  if (!check) return 0
  const outcome = await readOutcome(mill, round, view, snapshot.queues)
  for (const line of summaryLines(outcome)) terminal.print(line)
  const wrong = differences(outcome)
  for (const line of wrong) terminal.print(`WRONG ${line}`)
  terminal.print(wrong.length === 0 ? 'the counts are what the workload implies' : `${wrong.length} counts are wrong`)
  return wrong.length === 0 ? 0 : 1
}

/** Until every job is final; the schedule is paused when nothing else is left. */
async function untilFinal(mill: DemoMill, signal: AbortSignal): Promise<void> {
  const untilMs = performance.now() + ROUND_MAX_MS
  let paused = false
  while (!signal.aborted && performance.now() < untilMs) {
    const { items } = await mill.jobs.list({ status: ['scheduled', 'queued', 'blocked', 'running'] }, { limit: 200 })
    if (items.length === 0 && paused) return
    if (items.every(({ schedule }) => schedule !== null)) {
      await mill.schedules.pause(SCHEDULE)
      paused = true
    }
    await sleep(50, undefined, { signal }).catch(() => undefined)
  }
}

async function draw(terminal: Terminal, view: Watch, signal: AbortSignal): Promise<void> {
  const [periodMs, show] = terminal.live
    ? [FRAME_MS, (snapshot: Snapshot) => terminal.frame(renderScreen(snapshot, terminal.size()))]
    : [COUNTS_MS, (snapshot: Snapshot) => terminal.print(countsLine(snapshot))]
  while (!signal.aborted) {
    await sleep(periodMs, undefined, { signal }).catch(() => undefined)
    if (!signal.aborted) show(await view.snapshot())
  }
}

/** Aborts with the first Ctrl-C; a later one does not wait any longer. */
function stopSignal(terminal: Terminal): AbortSignal {
  const stopping = new AbortController()
  let firstMs = 0
  const onSignal = (): void => {
    if (!stopping.signal.aborted) {
      firstMs = performance.now()
      stopping.abort()
    } else if (performance.now() - firstMs > SAME_SIGNAL_MS) {
      terminal.restore()
      process.exit(130)
    }
  }
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.on(name, onSignal)
  return stopping.signal
}

interface Options {
  readonly once: boolean
  readonly plain: boolean
}

function readOptions(): Options | 'help' | Error {
  try {
    const { values } = parseArgs({
      options: { once: { type: 'boolean' }, plain: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } },
    })
    return values.help ? 'help' : { once: values.once ?? false, plain: values.plain ?? false }
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error))
  }
}

const options = readOptions()
if (options === 'help') console.log(USAGE)
else if (options instanceof Error) {
  console.error(`${options.message}\n\n${USAGE}`)
  process.exitCode = 2
} else process.exitCode = await main(options)
