// Real supervisors: the built command line in a process of its own, which forks worker processes. What they log is read, and
// what their jobs write down is counted.
import { spawn } from 'node:child_process'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeAll } from 'vitest'
import { binPath, runNode } from '../../scripts/run-stage.ts'
import { defineJob } from '../../src/index.ts'
import type {
  AlertOptions,
  AnyJob,
  AutoscaleOptions,
  PoolConfig,
  RunContext,
  SuperviseConfig,
  WorkOptions,
} from '../../src/index.ts'
import type { Address } from '../stores/place.ts'
import { oncePerRun } from '../support/postgres-server.ts'
import { runDirectory } from '../support/run-directory.ts'
import { until } from '../support/until.ts'
import { ROOT } from '../tidy/source.ts'

const COMPILE_MAX_MS = 120_000
const START_MAX_MS = 30_000

/** For those who enqueue; they run elsewhere. */
export const JOBS: readonly AnyJob[] = ['plain', 'held', 'leak', 'blocking'].map((name) =>
  defineJob({ name, queue: 'faults', attempts: 8, run: ({ input }: RunContext<number | string>) => input }),
)

export interface SupervisedOptions {
  readonly address: Address
  readonly pools?: Readonly<Record<string, PoolConfig>>
  readonly supervise?: SuperviseConfig
  readonly work?: WorkOptions
  readonly autoscale?: AutoscaleOptions
  readonly alerts?: AlertOptions
  /** Of the command line. */
  readonly flags?: readonly string[]
}

export interface LogLine {
  readonly level: string
  readonly message: string
  readonly time: string
  readonly pid?: number
  readonly child?: string
  readonly pool?: string
  readonly reason?: string
  readonly [field: string]: unknown
}

export interface Supervised {
  readonly pid: number
  /** Of the supervisor and its processes, in the order in which they came. */
  readonly lines: readonly LogLine[]
  readonly exit: Promise<number | null>
  readonly isAlive: boolean
  said(message: string): readonly LogLine[]
  /** Pids of processes that work. */
  workers(): readonly number[]
  signal(name: NodeJS.Signals): void
}

export interface Run {
  readonly job: string
  readonly pid: number
  readonly atMs: number
}

export interface SupervisedWorld {
  readonly dir: string
  start(options: SupervisedOptions): Supervised
  /** A file that jobs or processes wait for. */
  put(name: string): void
  take(name: string): void
  runs(): readonly Run[]
}

/** Call it at the top of a test file. What a test leaves running is killed. */
export function useSupervisors(): () => SupervisedWorld {
  let home = ''
  const pids = new Set<number>()
  beforeAll(async () => {
    home = await compiled()
  }, COMPILE_MAX_MS)
  afterEach(() => {
    for (const pid of pids) kill(pid, 'SIGKILL')
    pids.clear()
  })
  return () => openWorld(home, pids)
}

function openWorld(home: string, pids: Set<number>): SupervisedWorld {
  const dir = mkdtempSync(join(home, 'project-'))
  mkdirSync(join(dir, 'node_modules'))
  symlinkSync(home, join(dir, 'node_modules', 'millrace'))
  copyFileSync(join(ROOT, 'tests/supervisor/fixtures/millrace.config.mjs'), join(dir, 'millrace.config.mjs'))
  return {
    dir,
    put: (name) => writeFileSync(join(dir, name), ''),
    take: (name) => rmSync(join(dir, name)),
    runs: () => linesOf(join(dir, 'runs')).map(runOf),
    start({ flags = [], ...options }) {
      const { DATABASE_URL: _, MILLRACE_DATABASE_URL: __, MILLRACE_REDIS_URL: ___, ...env } = process.env
      const child = spawn(process.execPath, [join(home, 'dist/cli/main.js'), 'supervise', '--json', ...flags], {
        cwd: dir,
        env: { ...env, SUPERVISED: JSON.stringify({ dir, ...options }) },
        stdio: ['ignore', 'ignore', 'pipe'],
      })
      const lines: LogLine[] = []
      let rest = ''
      child.stderr.on('data', (chunk: Buffer) => {
        const parts = (rest + chunk.toString()).split('\n')
        rest = parts.pop() ?? ''
        for (const line of parts) lines.push(parsed(line))
        const started = lines.flatMap(({ message, pid }) => (message === 'worker process started' ? [pid ?? 0] : []))
        for (const pid of started) if (pid > 0) pids.add(pid)
      })
      let isAlive = true
      const exit = new Promise<number | null>((resolve) => {
        child.once('exit', (code) => {
          isAlive = false
          resolve(code)
        })
      })
      const pid = child.pid ?? 0
      pids.add(pid)
      return {
        pid,
        lines,
        exit,
        get isAlive() {
          return isAlive
        },
        said: (message) => lines.filter((line) => line.message === message),
        workers() {
          const gone = new Set([...of(lines, 'worker process ended'), ...of(lines, 'worker process ended unasked')])
          return of(lines, 'worker process is ready').filter((one) => !gone.has(one))
        },
        signal: (name) => kill(pid, name),
      }
    },
  }
}

function of(lines: readonly LogLine[], message: string): readonly number[] {
  return lines.flatMap((line) => (line.message === message && line.pid !== undefined ? [line.pid] : []))
}

export function isRunning(pid: number): boolean {
  return kill(pid, 0)
}

export function kill(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal)
  } catch {
    return false
  }
}

export async function untilWorking(supervised: Supervised, processes: number): Promise<void> {
  const holds = (): boolean => {
    if (!supervised.isAlive) throw new Error(`it ended: ${JSON.stringify(supervised.lines.slice(-5))}`)
    return supervised.workers().length === processes
  }
  await until(`${processes} processes to work`, holds, { withinMs: START_MAX_MS })
}

/** Once per test run: the package as users have it, beside a link to the packages it needs. */
async function compiled(): Promise<string> {
  const home = join(await runDirectory(), 'supervised')
  const done = join(home, 'done')
  const find = (): string | undefined => (existsSync(done) ? home : undefined)
  return oncePerRun(home, find, async () => {
    mkdirSync(home, { recursive: true })
    const args = [binPath('typescript'), '-p', join(ROOT, 'tsconfig.build.json'), '--outDir', join(home, 'dist')]
    const { code } = await runNode(
      [...args, '--declaration', 'false', '--sourceMap', 'false', '--inlineSources', 'false'],
      {
        cwd: ROOT,
        timeoutMs: COMPILE_MAX_MS,
      },
    )
    if (code !== 0) throw new Error('src does not compile')
    symlinkSync(join(ROOT, 'node_modules'), join(home, 'node_modules'))
    copyFileSync(join(ROOT, 'package.json'), join(home, 'package.json'))
    writeFileSync(done, 'compiled\n')
    return home
  })
}

function linesOf(path: string): readonly string[] {
  return existsSync(path) ? readFileSync(path, 'utf8').split('\n').filter(Boolean) : []
}

function runOf(line: string): Run {
  const [job = '', pid, atMs] = line.split(' ')
  return { job, pid: Number(pid), atMs: Number(atMs) }
}

function parsed(line: string): LogLine {
  try {
    return JSON.parse(line) as LogLine // written by the command line
  } catch {
    return { level: 'error', message: line, time: '' }
  }
}
