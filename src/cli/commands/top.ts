// `millrace top`: queues, rates, workers and failures on a full screen, looked at again and again.
import type { Command } from 'commander'
import type { Duration } from '../../core/duration.ts'
import { formatDuration, parseDuration } from '../../core/duration.ts'
import { DEFAULTS, LIMITS } from '../../core/limits.ts'
import { sleep } from '../../runtime/clock.ts'
import { CliError, describeError } from '../cli-error.ts'
import { runs, teach } from '../command.ts'
import type { Cli } from '../command.ts'
import { EXIT } from '../exit-codes.ts'
import { openFullScreen } from '../full-screen.ts'
import type { FullScreen } from '../full-screen.ts'
import { maskUrls } from '../mask.ts'
import { wantsColor } from '../output.ts'
import { withMill } from '../session.ts'
import type { Session } from '../session.ts'
import type { GlobalFlags } from '../settings.ts'
import { createTopReader } from '../top-facts.ts'
import { SORTS, renderTop, scrollMax } from '../top-view.ts'
import type { TopFacts, TopState } from '../top-view.ts'

interface TopFlags {
  readonly interval?: Duration
  readonly once?: boolean
}

const PAPER_WIDTH = 120
const PAGE = 10

export function addTop(program: Command, cli: Cli): void {
  const command = program
    .command('top')
    .summary('queues, rates, workers and failures, live')
    .description(
      'Shows queues with their rates, workers and the latest failures on a full screen, and looks again and again. Keys: q quits, p pauses, s sorts, arrows scroll, ? helps. While the store is away the last numbers stay, and it is said so. With --once, or --json, it shows one look and ends.',
    )
    .option('-i, --interval <time>', `between two looks; default ${formatDuration(DEFAULTS.watchMs)}`)
    .option('--once', 'one look as plain text, also without a terminal')
  teach(command, {
    examples: [
      ['top', 'q quits'],
      ['top --interval 500ms', 'twice a second'],
      ['top --once', 'one look, for a file or a mail'],
    ],
  })
  runs<TopFlags>(cli, command, (flags) => {
    const { io } = cli.parts
    const everyMs = parseDuration(flags.interval ?? DEFAULTS.watchMs, '--interval', { minMs: LIMITS.watchMinMs })
    const isOnce = flags.once === true || flags.json === true
    if (!isOnce && !(io.stdout.isTty && io.stdin.isTTY === true)) {
      throw new CliError('USAGE', 'top needs a terminal: use --once for one look as text, or status --watch')
    }
    return withMill(cli.parts, flags, (session) => (isOnce ? once(session, cli) : live(session, cli, flags, everyMs)))
  })
}

function firstState({ settings }: Session, everyMs: number): TopState {
  const { shown: store } = settings.store
  return { facts: null, store, trouble: null, everyMs, isPaused: false, isHelp: false, sort: 'ready', scroll: 0 }
}

async function once(session: Session, { parts: { io, clock } }: Cli): Promise<number> {
  const facts = await createTopReader(session, clock)()
  const width = io.stdout.isTty ? io.stdout.columns : PAPER_WIDTH
  const state = { ...firstState(session, DEFAULTS.watchMs), facts }
  const { report, workers, failures } = facts
  session.out.show({ health: report, workers, failures }, () => {
    // Without the line of keys: nobody can press any.
    const lines = renderTop(state, { width, height: Infinity, color: false }).slice(0, -1)
    return `${lines.map((line) => line.trimEnd()).join('\n')}\n`
  })
  return EXIT.done
}

async function live(session: Session, { parts }: Cli, flags: GlobalFlags, everyMs: number): Promise<number> {
  const { io, clock } = parts
  const read = createTopReader(session, clock)
  const color = flags.color !== false && wantsColor(io.stdout, io.env)
  const end = new AbortController()
  // Whoever quits does not wait for a store that is silent.
  const ended = new Promise<void>((resolve) => {
    end.signal.addEventListener('abort', () => resolve(), { once: true })
  })
  let code: number = EXIT.done
  let state = firstState(session, everyMs)
  let lastMs = clock.monoMs()
  // Whatever sleeps between two looks is woken to look now.
  let nap = new AbortController()

  const draw = (screen: FullScreen): void =>
    screen.draw(renderTop(state, { width: screen.width, height: screen.height, color }))
  const finish = (how: number): void => {
    code = how
    end.abort()
    nap.abort()
  }
  const screen = openFullScreen(io, {
    onResize: () => draw(screen),
    onKey(key) {
      const wasPaused = state.isPaused
      if (key === 'ctrl-c') return finish(EXIT.interrupted)
      if (key === 'q' && !state.isHelp) return finish(EXIT.done)
      state = pressed(state, key)
      if (wasPaused && !state.isPaused) nap.abort()
      draw(screen)
    },
  })
  const deaf = io.onSignal(() => finish(EXIT.interrupted))
  const look = async (): Promise<void> => {
    try {
      const facts: TopFacts = await read()
      lastMs = clock.monoMs()
      state = { ...state, facts, trouble: null, scroll: Math.min(state.scroll, scrollMax({ facts })) }
    } catch (error) {
      const message = maskUrls(describeError(error).message)
      state = { ...state, trouble: { message, forMs: clock.monoMs() - lastMs } }
    }
  }
  try {
    draw(screen)
    while (!end.signal.aborted) {
      if (!state.isPaused) await Promise.race([look(), ended])
      if (end.signal.aborted) break
      draw(screen)
      nap = new AbortController()
      await sleep(clock, everyMs, nap.signal)
    }
    return code
  } finally {
    deaf()
    screen.close()
  }
}

/** What a key does to what is shown. */
export function pressed(state: TopState, key: string): TopState {
  if (state.isHelp) return { ...state, isHelp: false }
  const to = (scroll: number): TopState => ({ ...state, scroll: Math.max(0, Math.min(scroll, scrollMax(state))) })
  switch (key) {
    case '?':
    case 'h':
      return { ...state, isHelp: true }
    case 'p':
    case ' ':
      return { ...state, isPaused: !state.isPaused }
    case 's':
      return { ...state, sort: SORTS[(SORTS.indexOf(state.sort) + 1) % SORTS.length]!, scroll: 0 }
    case 'j':
    case 'down':
      return to(state.scroll + 1)
    case 'k':
    case 'up':
      return to(state.scroll - 1)
    case 'page-down':
      return to(state.scroll + PAGE)
    case 'page-up':
      return to(state.scroll - PAGE)
    case 'g':
      return to(0)
    case 'G':
      return to(Infinity)
    default:
      return state
  }
}
