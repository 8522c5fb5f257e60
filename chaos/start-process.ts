// Worker and producer processes of a cell. They run the compiled program on plain Node, as users do.
import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { join } from 'node:path'
import { compileProject } from '../scripts/compile.ts'
import { until } from '../tests/postgres/faults/until.ts'
import type { Said, Settings, Told } from './protocol.ts'

export interface ChaosProcess {
  readonly pid: number
  readonly isAlive: boolean
  /** It ended, and nobody here had asked for it. */
  readonly hasQuit: boolean
  /** The last line of its stderr that speaks of an error. */
  readonly lastWords: string
  /** Enqueues that failed: their callers were told so. */
  readonly refused: readonly string[]
  tell(told: Told): void
  signal(name: 'SIGSTOP' | 'SIGCONT' | 'SIGKILL'): void
  /** Asks it to stop, and kills it when it does not. */
  stop(): Promise<void>
}

/** The compiled program and the Node that runs it. */
export interface Program {
  readonly path: string
  readonly node: string
}

const START_MAX_MS = 30_000
const STOP_MAX_MS = 15_000
const WORDS_MAX = 4_000

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

export async function startProcess({ path, node }: Program, settings: Settings): Promise<ChaosProcess> {
  const child = fork(path, [JSON.stringify(settings)], {
    execPath: node,
    execArgv: [],
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  // A peer may say a lot when its store is away.
  let words = ''
  child.stderr?.on('data', (bytes: Buffer) => (words = `${words}${bytes.toString()}`.slice(-WORDS_MAX)))
  const refused: string[] = []
  let isReady = false
  let isAlive = true
  let isAsked = false
  child.on('message', (said: Said) => {
    if (said.kind === 'ready') isReady = true
    else refused.push(said.message)
  })
  child.on('error', () => undefined) // seen as its end
  child.once('exit', () => (isAlive = false))
  endWithThis(child)
  try {
    await until(() => isReady, `a ${settings.role} of ${settings.system} to start`, {
      limitMs: START_MAX_MS,
      goesOn: () => isAlive,
    })
  } catch (error) {
    child.kill('SIGKILL')
    throw error
  }
  const signal = (name: NodeJS.Signals): void => {
    if (name === 'SIGKILL') isAsked = true
    if (isAlive) child.kill(name)
  }
  return {
    pid: child.pid ?? 0,
    refused,
    get isAlive() {
      return isAlive
    },
    get hasQuit() {
      return !isAlive && !isAsked
    },
    get lastWords() {
      return (
        words
          .split('\n')
          .findLast((line) => /error/i.test(line))
          ?.trim() ?? 'it said nothing'
      )
    },
    tell(told) {
      if (told === 'die') isAsked = true
      if (child.connected) child.send(told)
    },
    signal,
    async stop() {
      isAsked = true
      if (child.connected) child.send('stop' satisfies Told)
      await until(() => !isAlive, 'it to stop', { limitMs: STOP_MAX_MS }).catch(() => signal('SIGKILL'))
    },
  }
}
