// What the tests of the embedded server share: directories, other processes that use it, and looking at it from outside.
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { fileURLToPath, pathToFileURL } from 'node:url'
import pg from 'pg'
import { afterAll, beforeAll, vi } from 'vitest'
import { compileProject } from '../../scripts/compile.ts'
import { isRunning } from '../../src/backends/embedded/processes.ts'
import { readState } from '../../src/backends/embedded/state.ts'
import { copyCluster } from '../support/postgres-server.ts'

const USER = fileURLToPath(new URL('./fixtures/user.mjs', import.meta.url))
/** Longer than a fast shutdown may take before an immediate one follows. */
const DEADLINE_MS = 45_000

// Where the disk is busy, initdb alone takes ten seconds for its syncs.
vi.setConfig({ testTimeout: 2 * DEADLINE_MS, hookTimeout: 2 * DEADLINE_MS })

const made: string[] = []

afterAll(async () => {
  for (const dir of made) {
    await until(() => serverPid(join(dir, '.millrace')) === undefined, 'the server to be gone')
    rmSync(dir, { recursive: true, force: true })
  }
})

/** A directory to be, in one that everybody may look into as into a checkout. Removed after the file. */
export function directory(): string {
  const dir = mkdtempSync(join(tmpdir(), 'millrace-embedded-'))
  chmodSync(dir, 0o755)
  made.push(dir)
  return join(dir, '.millrace')
}

/** The same with data in it, for tests to which the first start does not matter. */
export async function directoryWithData(): Promise<string> {
  const dir = directory()
  mkdirSync(dir)
  copyFileSync(await copyCluster(18, join(dir, 'pg18')), join(dir, 'password'))
  return dir
}

export interface UserProcess {
  /** Its address of the server; it rejects if there was none. */
  readonly url: Promise<string>
  /** Lets it stop and end. */
  leave(): Promise<void>
  /** As kill -9 does. */
  kill(): Promise<void>
}

/** Starts processes that use a server through the compiled library. */
export function useCompiled(): (dir: string, lingerMs?: number) => UserProcess {
  let library = ''
  const children: ChildProcess[] = []
  beforeAll(async () => {
    const outDir = await compileProject('tests/embedded/tsconfig.json', 'embedded')
    library = pathToFileURL(join(outDir, 'backends', 'embedded', 'start-embedded.js')).href
    return () => rmSync(outDir, { recursive: true, force: true })
  })
  afterAll(() => children.forEach((child) => child.kill('SIGKILL')))
  return (dir, lingerMs) => {
    const args = [USER, library, dir, ...(lingerMs === undefined ? [] : [String(lingerMs)])]
    const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] })
    children.push(child)
    const exited = once(child, 'exit')
    const url = firstLine(child.stdout).then((line) => {
      const said = JSON.parse(line) as { url?: string; error?: string }
      if (said.url === undefined) throw new Error(said.error)
      return said.url
    })
    url.catch(() => undefined) // for those that are killed before they have one
    return {
      url,
      async leave() {
        child.stdin.end()
        await exited
      },
      async kill() {
        child.kill('SIGKILL')
        await exited
      },
    }
  }
}

async function firstLine(output: Readable): Promise<string> {
  for await (const line of createInterface(output)) return line
  throw new Error('the process ended without a word')
}

export async function until(condition: () => boolean, what: string): Promise<void> {
  const deadlineMs = performance.now() + DEADLINE_MS
  while (!condition()) {
    if (performance.now() > deadlineMs) throw new Error(`waited in vain for ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

export async function query(url: string, text: string): Promise<readonly Record<string, unknown>[]> {
  const client = new pg.Client(url)
  client.on('error', () => undefined)
  await client.connect()
  try {
    return (await client.query<Record<string, unknown>>(text)).rows
  } finally {
    await client.end()
  }
}

/** The server process as PostgreSQL itself wrote it down, while it runs. */
export function serverPid(dir: string): number | undefined {
  try {
    const pid = Number(readFileSync(join(dir, 'pg18', 'postmaster.pid'), 'utf8').split('\n')[0])
    return pid > 0 && isRunning(pid) ? pid : undefined
  } catch {
    return undefined // it may go between two looks
  }
}

/** The guardian, as soon as there is one, and not this one. */
export async function untilGuardian(dir: string, not?: number): Promise<number> {
  let pid: number | undefined
  await until(() => {
    pid = readState(join(dir, 'state.json'))?.guardian.pid
    return pid !== undefined && pid !== not
  }, 'the guardian')
  return pid!
}

export async function untilServerIsGone(dir: string): Promise<void> {
  const isGone = (): boolean =>
    serverPid(dir) === undefined && !['state.json', 'lock'].some((name) => existsSync(join(dir, name)))
  await until(isGone, 'the server to be gone')
}
