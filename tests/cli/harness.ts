// The command line without a process: commands run here, over a memory store that outlives each of them, and
// what they write is kept.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { expect, onTestFinished } from 'vitest'
import { z } from 'zod'
import type { MillraceConfig } from '../../src/cli/config.ts'
import type { CliIo, ControlSignal, Screen, StopSignal } from '../../src/cli/io.ts'
import { runCli } from '../../src/cli/run-cli.ts'
import type { CliParts } from '../../src/cli/session.ts'
import { createMillrace, defineJob, fail, fixed, memory } from '../../src/index.ts'
import type { AnyJob, Millrace } from '../../src/index.ts'
import type { RunContext } from '../../src/index.ts'
import type { Backend } from '../../src/store/ports.ts'

export const mail = defineJob({
  name: 'send-mail',
  queue: 'mail',
  input: z.object({ to: z.string() }),
  tags: ['post'],
  run: ({ input }) => ({ sentTo: input.to }),
})
export const noop = defineJob({ name: 'noop', run: () => undefined })
export const boom = defineJob({
  name: 'boom',
  queue: 'fragile',
  run: ({ input }: RunContext<string>) => fail(input),
})
export const flaky = defineJob({
  name: 'flaky',
  queue: 'fragile',
  retry: fixed({ attempts: 3, delay: '1h' }),
  run: () => Promise.reject(new Error('not today')),
})

export const JOBS = [mail, noop, boom, flaky] as const
export const UNKNOWN_ID = '019f0000-0000-7000-8000-000000000000'

export interface Ran {
  readonly code: number
  readonly out: string
  readonly err: string
  /** What `--json` wrote. */
  readonly json: Readonly<Record<string, unknown>>
}

export interface RunOptions extends Partial<Omit<CliParts, 'io'>> {
  readonly tty?: boolean
  readonly columns?: number
  readonly env?: CliIo['env']
  readonly cwd?: string
  /** What the person at the terminal types. */
  readonly answer?: string
  /** What comes through a pipe. */
  readonly stdin?: string
  readonly rssBytes?: () => number
}

export interface Started {
  readonly done: Promise<Ran>
  readonly signal: (signal: StopSignal) => void
  readonly out: () => string
  readonly err: () => string
  /** What `exit` was called with. */
  readonly exits: readonly number[]
}

export function start(argv: readonly string[], options: RunOptions = {}): Started {
  const { tty = false, columns = 200, env = {}, cwd = tmpdir(), answer, stdin = '', rssBytes, ...parts } = options
  const texts = { out: '', err: '' }
  const listeners = new Set<(signal: StopSignal) => void>()
  const controlListeners = new Set<(signal: ControlSignal) => void>()
  const exits: number[] = []
  const screen = (name: 'out' | 'err'): Screen => ({
    isTty: tty,
    columns,
    write: (text) => void (texts[name] += text),
  })
  const input = Object.assign(new PassThrough(), { isTTY: tty })
  input.end(answer === undefined ? stdin : `${answer}\n`)
  const io: CliIo = {
    stdout: screen('out'),
    stderr: screen('err'),
    stdin: input,
    env,
    cwd,
    onSignal(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    onControlSignal(listener) {
      controlListeners.add(listener)
      return () => controlListeners.delete(listener)
    },
    exit: (code) => void exits.push(code),
    rssBytes: rssBytes ?? (() => 0),
  }
  const done = runCli(argv, io, parts).then((code): Ran => {
    const { out, err } = texts
    return {
      code,
      out,
      err,
      get json() {
        if (out === '') throw new Error(`nothing on stdout; stderr: ${err}`)
        return JSON.parse(out) as Readonly<Record<string, unknown>>
      },
    }
  })
  return {
    done,
    exits,
    out: () => texts.out,
    err: () => texts.err,
    signal: (signal) => {
      for (const listener of listeners) listener(signal)
    },
  }
}

export interface Setup {
  readonly backend: Backend
  readonly mill: Millrace<readonly AnyJob[]>
  readonly cwd: string
  readonly run: (line: string | readonly string[], options?: RunOptions) => Promise<Ran>
  readonly begin: (line: string | readonly string[], options?: RunOptions) => Started
}

/** A folder with a configuration whose backend is here already, and a client of it to look with. */
export async function setup(config: Partial<MillraceConfig> = {}): Promise<Setup> {
  const backend = config.backend ?? memory()
  const jobs: readonly AnyJob[] = config.jobs ?? JOBS
  const mill = await createMillrace({ jobs, backend })
  const cwd = temporaryFolder()
  writeFileSync(join(cwd, 'millrace.config.mjs'), 'export default {}\n')
  onTestFinished(() => mill.stop({ deadline: 0 }))
  const load = (): Promise<unknown> => Promise.resolve({ default: { ...config, jobs, backend } })
  const words = (line: string | readonly string[]) => (typeof line === 'string' ? line.split(' ') : line)
  const begin: Setup['begin'] = (line, options = {}) => start(words(line), { cwd, load, ...options })
  return { backend, mill, cwd, begin, run: (line, options) => begin(line, options).done }
}

export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-cli-'))
  // A server of its own is stopped a moment after its last user, by a process that nobody waits for.
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 50, retryDelay: 100 }))
  return folder
}

/** Works until every job that is ready has ended. */
export async function workOff(mill: Millrace<readonly AnyJob[]>, ids: readonly string[]): Promise<void> {
  await mill.work()
  for (const id of ids) await mill.result(id).catch(() => undefined)
}

/** What another part of this process does in its own time. */
export function eventually<Value>(read: () => Value | Promise<Value>) {
  return expect.poll(read, { timeout: 10_000, interval: 5 })
}
