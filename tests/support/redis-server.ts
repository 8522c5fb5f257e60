// Real Redis servers for tests: started on free ports of loopback, each with a directory of its own, installed from
// Debian where there is none.
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { Redis } from 'ioredis'
import { freePort } from '../../src/backends/embedded/start-postmaster.ts'
import { ensureDebianPackage } from './debian-package.ts'
import { oncePerRun } from './postgres-server.ts'
import { runDirectory } from './run-directory.ts'

export interface RedisServerOptions {
  /** Default: AOF with everysec, the setting that docs recommend. */
  readonly appendOnly?: boolean
  /** Lines of redis.conf, as `name` and `value`. */
  readonly config?: Readonly<Record<string, string>>
  /** Default: a free one. */
  readonly port?: number
  /** A sentinel instead of a store. */
  readonly isSentinel?: boolean
  /** Default true; otherwise it ends with the directory of the run. */
  readonly endsWithProcess?: boolean
  /** How `command` gets in, where the server asks who is there. Default: with the `requirepass` of the configuration. */
  readonly login?: RedisLogin
}

export interface RedisLogin {
  readonly username?: string
  readonly password?: string
  /** Texts in PEM form, for a server that speaks TLS alone. */
  readonly tls?: { readonly ca: string; readonly cert?: string; readonly key?: string }
}

export interface RedisProcess {
  readonly url: string
  readonly port: number
  readonly dir: string
  /** Of the process that runs now. */
  readonly pid: number
  command(...args: readonly (string | number)[]): Promise<unknown>
  /** SIGKILL by default: nothing is saved. */
  kill(signal?: NodeJS.Signals): Promise<void>
  /** Frozen, connections open: who waits for an answer waits. */
  pause(): void
  resume(): void
  /** Again on the same port; `keepData: false` begins empty. */
  restart(options?: { readonly keepData?: boolean }): Promise<void>
  stop(): Promise<void>
}

const PROGRAM = '/usr/bin/redis-server'
const READY_MAX_MS = 10_000
const POLL_MS = 5

export type SharedRedis = Pick<RedisProcess, 'url' | 'port' | 'dir'>

/** The server of this run, started by the first who asks. Leave it as it is: others use it, each under a prefix of its own. */
export async function sharedRedis(): Promise<SharedRedis> {
  const home = join(await runDirectory(), 'shared-redis')
  const file = `${home}.json`
  const find = (): SharedRedis | undefined =>
    existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as SharedRedis) : undefined // written below
  return await oncePerRun(home, find, async () => {
    const { url, port, dir } = await startRedis({ endsWithProcess: false })
    writeFileSync(`${file}.new`, JSON.stringify({ url, port, dir }))
    renameSync(`${file}.new`, file)
    return { url, port, dir }
  })
}

export async function startRedis(options: RedisServerOptions = {}): Promise<RedisProcess> {
  const dir = mkdtempSync(join(await runDirectory(), `redis-${randomBytes(3).toString('hex')}-`))
  const port = options.port ?? (await freePort())
  const file = join(dir, 'redis.conf')
  const settings = {
    port: String(port),
    bind: '127.0.0.1',
    dir,
    pidfile: join(dir, 'redis.pid'),
    daemonize: 'no',
    // Its command goes on naming this directory, by which whoever cleans up knows it: run-directory.ts.
    'set-proc-title': 'no',
    ...(!options.isSentinel && {
      save: '""',
      appendonly: options.appendOnly === false ? 'no' : 'yes',
      appendfsync: 'everysec',
      // A replica is served at once, not after the 5 s in which others might come.
      'repl-diskless-sync-delay': '0',
    }),
    ...options.config,
  }
  writeFileSync(
    file,
    Object.entries(settings)
      .map(([name, value]) => `${name} ${value}\n`)
      .join(''),
  )
  const password = options.config?.['requirepass']
  const login = options.login ?? (password === undefined ? {} : { password })
  const start: Start = {
    program: findProgram(),
    args: [file, ...(options.isSentinel ? ['--sentinel'] : [])],
    dir,
    endsWithProcess: options.endsWithProcess ?? true,
  }
  let child = await begin(start, port, login)
  const home = dir

  const kill = async (signal: NodeJS.Signals = 'SIGKILL'): Promise<void> => {
    const ending = child
    if (hasEnded(ending)) return
    ending.kill(signal)
    await until(() => hasEnded(ending), 'redis to end', home)
  }
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    dir,
    get pid() {
      return child.pid ?? 0
    },
    command: (...args) => once(port, login, args),
    kill,
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
    async restart({ keepData = true } = {}) {
      await kill()
      if (!keepData) {
        rmSync(join(dir, 'appendonlydir'), { recursive: true, force: true })
        rmSync(join(dir, 'dump.rdb'), { force: true })
      }
      child = await begin(start, port, login)
    },
    stop: () => kill('SIGKILL'),
  }
}

function findProgram(): string {
  const dirs = (process.env['PATH'] ?? '').split(delimiter)
  const candidates = ['redis-server', 'valkey-server'].flatMap((name) => dirs.map((dir) => join(dir, name)))
  const found = candidates.find((path) => existsSync(path))
  if (found === undefined) ensureDebianPackage({ name: 'redis-server', program: PROGRAM })
  return found ?? PROGRAM
}

interface Start {
  readonly program: string
  readonly args: readonly string[]
  readonly dir: string
  readonly endsWithProcess: boolean
}

async function begin(
  { program, args, dir, endsWithProcess }: Start,
  port: number,
  login: RedisLogin,
): Promise<ChildProcess> {
  const log = openSync(join(dir, 'redis.log'), 'a')
  const child = spawn(program, args, { stdio: ['ignore', log, log], detached: true })
  closeSync(log)
  child.on('error', () => undefined) // seen as not running below
  child.unref()
  if (endsWithProcess) killAtExit(child)
  await until(
    () => accepts(port, login),
    'redis to answer',
    dir,
    () => !hasEnded(child),
  )
  return child
}

/** With all its threads: one that still ends keeps the port, while its process is a zombie already. */
function hasEnded({ pid, exitCode, signalCode }: ChildProcess): boolean {
  return pid === undefined || exitCode !== null || signalCode !== null
}

const living = new Set<ChildProcess>()

/** One listener for them all: Node warns of many. */
function killAtExit(child: ChildProcess): void {
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

async function accepts(port: number, login: RedisLogin): Promise<boolean> {
  return once(port, login, ['PING']).then(
    () => true,
    (error: unknown) => /NOAUTH|NOPERM|WRONGPASS/.test(String(error)),
  )
}

async function once(port: number, login: RedisLogin, args: readonly (string | number)[]): Promise<unknown> {
  const client = new Redis({
    port,
    host: '127.0.0.1',
    lazyConnect: true,
    retryStrategy: () => null,
    ...login,
  })
  client.on('error', () => undefined) // the call fails by itself
  try {
    await client.connect()
    const [name, ...rest] = args
    return await client.call(String(name), rest)
  } finally {
    client.disconnect()
  }
}

async function until(
  holds: () => boolean | Promise<boolean>,
  what: string,
  dir: string,
  mayGoOn: () => boolean = () => true,
): Promise<void> {
  const deadlineMs = performance.now() + READY_MAX_MS
  while (!(await holds())) {
    if (!mayGoOn() || performance.now() > deadlineMs) {
      throw new Error(`waited in vain for ${what}; its log ends with:\n${tail(join(dir, 'redis.log'))}`)
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
}

function tail(path: string): string {
  return existsSync(path) ? readFileSync(path, 'utf8').slice(-2_000) : '(no log)'
}
