// `npm start`: Millrace at work on the PostgreSQL that it brings along, so that a restart finds the jobs again. A live
// table on a terminal, plain lines elsewhere; ends with Ctrl-C, or with `--once` by itself after one round whose
// counts are checked.
import { resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { isMillraceError } from '../../src/index.ts'
import { earlierLines, readEarlier } from './earlier.ts'
import type { Earlier } from './earlier.ts'
import { differences, isCutShort, readOutcome, summaryLines, untilEnded } from './outcome.ts'
import { countsLine, happeningLine, statusCounts } from './plain.ts'
import { renderCounts, renderScreen } from './screen.ts'
import { Terminal } from './terminal.ts'
import { watch } from './watch.ts'
import type { Snapshot, Watch } from './watch.ts'
import { CONCURRENCY, createDemoMill, enqueueRound, keepBusy } from './workload.ts'
import type { DemoMill, Round } from './workload.ts'

const USAGE = `npm start -- [options]

  --once    one round of jobs, then check the counts and end: exit 0, or 1 if they are wrong
  --memory  keep the jobs in memory and not in the PostgreSQL under .millrace; they end with the process
  --plain   lines instead of the live table (the default when the output is not a terminal)
  --help    show this

Ctrl-C stops gracefully: running jobs finish, the others stay where they are. NO_COLOR is respected.`

/** The default of Millrace. */
const DATA_DIR = '.millrace'
const FRAME_MS = 200
const COUNTS_MS = 1_000
/** With this many jobs left by earlier runs there is enough to see. */
const UNFINISHED_ENOUGH = 40
/** One Ctrl-C can arrive twice: from the terminal and passed on by npm. */
const SAME_SIGNAL_MS = 500

async function main(options: Options): Promise<number> {
  const terminal = new Terminal(options.plain)
  const stopping = stopSignal(terminal)
  terminal.print(
    options.memory
      ? 'the jobs of this run are kept in memory and end with it'
      : `starting PostgreSQL, data in ${resolve(DATA_DIR)} (the first time takes a few seconds)`,
  )
  const mill = await createDemoMill({ inMemory: options.memory })
  try {
    const earlier = await readEarlier(mill)
    if (!options.memory) for (const line of earlierLines(earlier)) terminal.print(line)
    const store = options.memory ? 'the memory backend' : `PostgreSQL, data in ${DATA_DIR}`
    const view = watch(mill, store, terminal.live ? undefined : (happening) => terminal.print(happeningLine(happening)))
    const round = await work({ mill, view, terminal, stopping, earlier, once: options.once })
    const exitCode = await report(mill, view, terminal, stopping.aborted ? null : round)
    if (!options.memory && stopping.aborted) terminal.print(`the jobs stay in ${DATA_DIR}: the next start goes on`)
    return options.once && stopping.aborted ? 130 : exitCode
  } finally {
    await mill.stop()
  }
}

interface Stage {
  readonly mill: DemoMill
  readonly view: Watch
  readonly terminal: Terminal
  readonly stopping: AbortSignal
  readonly earlier: Earlier
  readonly once: boolean
}

/** Until Ctrl-C, or until the one round has ended; answers with it if there was one to check. */
async function work({ mill, view, terminal, stopping, earlier, once }: Stage): Promise<Round | null> {
  if (stopping.aborted) return null
  const worker = await mill.work({ concurrency: CONCURRENCY })
  view.note(`a worker with ${CONCURRENCY} slots has started`)
  const drawing = new AbortController()
  const drawn = draw(terminal, view, drawing.signal)
  try {
    if (earlier.batch !== null) view.follow(earlier.batch)
    if (once || earlier.unfinished < UNFINISHED_ENOUGH) {
      const round = await enqueueRound(mill)
      view.note('a round of jobs is enqueued')
      view.follow(round.batch)
      if (once) {
        await untilEnded(mill, round, stopping)
        return round
      }
    } else view.note(`${earlier.unfinished} jobs of earlier runs go on; no new round of jobs`)
    await keepBusy(mill, stopping, (batch) => view.follow(batch))
    return null
  } finally {
    if (stopping.aborted) view.note('stopping: running jobs finish, nothing new starts')
    await worker.stop({ deadline: '8s' })
    drawing.abort()
    await drawn
    terminal.restore()
  }
}

/** Prints how things stand at the end, and checks the round if there is one; the exit code. */
async function report(mill: DemoMill, view: Watch, terminal: Terminal, round: Round | null): Promise<number> {
  const { queues } = await view.snapshot()
  if (round === null) {
    terminal.print(`\n${renderCounts(queues, terminal.size())}`)
    return 0
  }
  const outcome = await readOutcome(mill, round)
  terminal.print(`\n${renderCounts(outcome.queues, terminal.size())}`)
  for (const line of summaryLines(outcome)) terminal.print(line)
  terminal.print(`in the store: ${statusCounts(queues)}`)
  const wrong = differences(outcome)
  for (const line of wrong) terminal.print(`WRONG ${line}`)
  if (isCutShort(outcome)) terminal.print('out of time: a busy machine, or many jobs of other runs before these')
  terminal.print(wrong.length === 0 ? 'the counts are what the workload implies' : `${wrong.length} counts are wrong`)
  return wrong.length === 0 ? 0 : 1
}

async function draw(terminal: Terminal, view: Watch, signal: AbortSignal): Promise<void> {
  const [periodMs, show] = terminal.live
    ? [FRAME_MS, (snapshot: Snapshot) => terminal.frame(renderScreen(snapshot, terminal.size()))]
    : [COUNTS_MS, (snapshot: Snapshot) => terminal.print(countsLine(snapshot))]
  while (!signal.aborted) {
    await sleep(periodMs, undefined, { signal }).catch(() => undefined)
    if (signal.aborted) return
    // A store that does not answer for a moment is no reason to end.
    await view.snapshot().then(show, (error: unknown) => view.note(`there is nothing new to show: ${String(error)}`))
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
  readonly memory: boolean
  readonly plain: boolean
}

function readOptions(): Options | 'help' | Error {
  try {
    const { values } = parseArgs({
      options: {
        once: { type: 'boolean', default: false },
        memory: { type: 'boolean', default: false },
        plain: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    })
    return values.help ? 'help' : values
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error))
  }
}

/** What went wrong outside of the demo, such as a database that does not start, says itself what to do. */
function failed(error: unknown): number {
  if (!isMillraceError(error)) throw error
  console.error(`${error.code}: ${error.message}\n\nnpm start -- --memory runs the demo without a database`)
  return 1
}

const options = readOptions()
if (options === 'help') console.log(USAGE)
else if (options instanceof Error) {
  console.error(`${options.message}\n\n${USAGE}`)
  process.exitCode = 2
} else process.exitCode = await main(options).catch(failed)
