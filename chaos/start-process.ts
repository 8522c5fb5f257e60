// Worker and producer processes of a cell. They run the compiled program on plain Node, as users do.
import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { compileProject } from '../scripts/compile.ts'
import { until } from '../tests/postgres/faults/until.ts'
import { AHEAD_VARIABLE } from './clock.ts'
import type { Look, Said, Settings, Told } from './protocol.ts'

export interface ChaosProcess {
  readonly pid: number
  readonly isAlive: boolean
  /** When it ended. */
  readonly endedMs: number | undefined
  /** Undefined: it has not ended. Null: a signal ended it. */
  readonly exitCode: number | null | undefined
  /** It ended, and nobody here had asked for it. */
  readonly hasQuit: boolean
  /** The last line of its stderr that speaks of an error. */
  readonly lastWords: string
  /** The end of what it said there. */
  readonly words: string
  /** Enqueues that failed: their callers were told so. */
  readonly refused: readonly string[]
  tell(told: Told): void
  /** The most memory that it has had so far. */
  rssMaxBytes(): Promise<number>
  signal(name: 'SIGSTOP' | 'SIGCONT' | 'SIGTERM' | 'SIGKILL'): void
  /** Asks it to stop, and kills it when it does not: then it is false. */
  stop(): Promise<boolean>
}

/** The compiled program and the Node that runs it. */
export interface Program {
  readonly path: string
  readonly node: string
}

const START_MAX_MS = 30_000
/** More where a process has many: each loads its program into a thread. */
const START_MAX_PER_WORKER_MS = 2_000
const STOP_MAX_MS = 15_000
const WORDS_MAX = 8_000
/** Two processes look at the clock one after the other. */
const CLOCK_MAX_MS = 10_000

let compiled: Promise<string> | undefined

/** Compiled once; removed when this process ends. */
export async function programOn(node: string): Promise<Program> {
  compiled ??= compileProject('chaos/tsconfig.json', 'chaos')
  return { path: join(await compiled, 'chaos', 'process.js'), node }
}

const living = new Set<ChildProcess>()

/** One that is stopped by SIGSTOP does not notice that its harness has gone. */
function endWithThis(child: ChildProcess): void {
  if (living.size === 0) process.on('exit', killLiving)
  living.add(child)
  child.once('exit', () => {
    living.delete(child)
    if (living.size === 0) process.off('exit', killLiving)
  })
}

function killLiving(): void {
  for (const child of living) child.kill('SIGKILL')
}

const abandoned = new WeakSet<Program>()

/** Of a cell that does not end by itself: kills all that are there, and whoever would start another of this program fails. */
export function abandon(program: Program): void {
  abandoned.add(program)
  killLiving()
}

export async function startProcess(
  program: Program,
  settings: Settings,
  { aheadMs, heapMaxMiB }: Look = {},
): Promise<ChaosProcess> {
  if (abandoned.has(program)) throw new Error('its cell is over')
  const { path, node } = program
  const shift = pathToFileURL(join(dirname(path), 'shift-clock.js')).href
  const child = fork(path, [JSON.stringify(settings)], {
    execPath: node,
    execArgv: [
      ...(aheadMs === undefined ? [] : ['--import', shift]),
      ...(heapMaxMiB === undefined ? [] : [`--max-old-space-size=${heapMaxMiB}`]),
    ],
    ...(aheadMs !== undefined && { env: { ...process.env, [AHEAD_VARIABLE]: String(aheadMs) } }),
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  // A peer may say a lot when its store is away.
  let words = ''
  child.stderr?.on('data', (bytes: Buffer) => (words = `${words}${bytes.toString()}`.slice(-WORDS_MAX)))
  const refused: string[] = []
  let isReady = false
  let clockMs = 0
  let rssMaxBytes: number | undefined
  let isAlive = true
  let endedMs: number | undefined
  let exitCode: number | null | undefined
  let isAsked = false
  child.on('message', (said: Said) => {
    if (said.kind === 'ready') {
      isReady = true
      clockMs = said.nowMs - Date.now()
    } else if (said.kind === 'measured') rssMaxBytes = said.rssMaxBytes
    else refused.push(said.message)
  })
  child.on('error', () => undefined) // seen as its end
  child.once('exit', (code) => {
    endedMs = Date.now()
    exitCode = code
  })
  // Not before its last words have been read.
  child.once('close', () => (isAlive = false))
  endWithThis(child)
  try {
    await until(() => isReady, `a ${settings.role} of ${settings.system} to start`, {
      limitMs: START_MAX_MS + (settings.role === 'worker' ? (settings.workers ?? 1) * START_MAX_PER_WORKER_MS : 0),
      goesOn: () => isAlive,
    })
    // A clock that was not moved would make its scenario a walk in the park.
    if (Math.abs(clockMs - (aheadMs ?? 0)) > CLOCK_MAX_MS) throw new Error(`its clock is off by ${clockMs} ms`)
  } catch (error) {
    child.kill('SIGKILL')
    throw new Error(`${error instanceof Error ? error.message : String(error)}; it said: ${lastWordsIn(words)}`, {
      cause: error,
    })
  }
  const signal = (name: NodeJS.Signals): void => {
    if (name === 'SIGKILL' || name === 'SIGTERM') isAsked = true
    if (isAlive) child.kill(name)
  }
  return {
    pid: child.pid ?? 0,
    refused,
    get isAlive() {
      return isAlive
    },
    get endedMs() {
      return endedMs
    },
    get exitCode() {
      return exitCode
    },
    get hasQuit() {
      return !isAlive && !isAsked
    },
    get words() {
      return words
    },
    get lastWords() {
      return lastWordsIn(words)
    },
    tell(told) {
      if (told === 'exhaust' || isDeadly(told)) isAsked = true
      if (child.connected) child.send(told)
    },
    async rssMaxBytes() {
      rssMaxBytes = undefined
      if (child.connected) child.send('measure' satisfies Told)
      await until(() => rssMaxBytes !== undefined, 'it to say how much memory it had', { goesOn: () => isAlive })
      return rssMaxBytes!
    },
    signal,
    async stop() {
      isAsked = true
      if (child.connected) child.send('stop' satisfies Told)
      const inOrder = until(() => !isAlive, 'it to stop', { limitMs: STOP_MAX_MS }).then(() => true)
      return await inOrder.catch(() => {
        signal('SIGKILL')
        return false
      })
    },
  }
}

function isDeadly(told: Told): boolean {
  return typeof told === 'object' && told.signal === 'SIGKILL'
}

function lastWordsIn(words: string): string {
  const line = words.split('\n').findLast((one) => /error/i.test(one))
  return line?.trim() ?? 'it said nothing'
}
