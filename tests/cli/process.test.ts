// The executable as users get it: built, in a process of its own, with a configuration in TypeScript, real
// signals and the embedded PostgreSQL.
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { chmodSync, copyFileSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { binPath } from '../../scripts/run-stage.ts'
import { ROOT } from '../tidy/source.ts'
import { temporaryFolder } from './harness.ts'

const BUILD_MAX_MS = 120_000
const RUN_MAX_MS = 60_000

/** Ignored by git, and inside the repository so that installed packages are found. */
const built = join(ROOT, '.millrace', `cli-${process.pid}`)
const main = join(built, 'dist', 'cli', 'main.js')

interface Running {
  readonly child: ChildProcess
  readonly done: Promise<{ readonly code: number | null; readonly out: string; readonly err: string }>
  err(): string
  /** Until stderr has this text. */
  said(text: string): Promise<void>
}

beforeAll(async () => {
  mkdirSync(built, { recursive: true })
  copyFileSync(join(ROOT, 'package.json'), join(built, 'package.json'))
  const args = [binPath('typescript'), '-p', join(ROOT, 'tsconfig.build.json'), '--outDir', join(built, 'dist')]
  const { out } = await node(args, ROOT).done
  expect(existsSync(main), out).toBe(true)
}, BUILD_MAX_MS)

afterAll(() => rmSync(built, { recursive: true, force: true }))

function node(args: readonly string[], cwd: string, env: NodeJS.ProcessEnv = {}): Running {
  const { DATABASE_URL: _, MILLRACE_DATABASE_URL: __, ...rest } = process.env
  const child = spawn(process.execPath, args, { cwd, env: { ...rest, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
  const texts = { out: '', err: '' }
  child.stdout.on('data', (chunk: Buffer) => (texts.out += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (texts.err += chunk.toString()))
  const tooLong = setTimeout(() => child.kill('SIGKILL'), RUN_MAX_MS)
  const done = new Promise<Awaited<Running['done']>>((resolve) => {
    child.once('close', (code) => {
      clearTimeout(tooLong)
      resolve({ code, ...texts })
    })
  })
  const said = async (text: string): Promise<void> => {
    const heard = () => child.exitCode !== null || texts.err.includes(text)
    await expect.poll(heard, { timeout: RUN_MAX_MS, interval: 20 }).toBe(true)
    expect(texts.err).toContain(text)
  }
  return { child, done, said, err: () => texts.err }
}

function millrace(line: string | readonly string[], cwd: string): Running {
  const running = node([main, ...(typeof line === 'string' ? line.split(' ') : line)], cwd)
  onTestFinished(() => void running.child.kill('SIGKILL'))
  return running
}

/**
 * Enqueues into its own memory as it is loaded. No package is installed beside it: what it imports is the copy of
 * the command, and must be, for what `fail()` returns is known only to its own copy.
 */
const CONFIG = `
import { createMillrace, defineJob, fail, memory } from 'millrace'
import type { RunContext } from 'millrace'
import { wrapBackend } from 'millrace/backend'

const slow = defineJob({
  name: 'slow',
  async run({ input }: RunContext<number>) {
    await new Promise((resolve) => setTimeout(resolve, input))
    return { ok: true as const }
  },
})
const broken = defineJob({ name: 'broken', run: () => fail('as it should') })
const backend = wrapBackend(memory(), (_, call) => call())
const mill = await createMillrace({ jobs: [slow, broken], backend })
await mill.enqueue(broken)
await mill.enqueue(slow, Number(process.env['SLOW_MS'] ?? 600))
export default { jobs: [slow, broken], backend }
`

function project(): string {
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'millrace.config.ts'), CONFIG)
  return folder
}

describe('work', { timeout: 2 * RUN_MAX_MS }, () => {
  test('loads TypeScript, runs jobs, and drains on SIGTERM', async () => {
    const work = millrace('work --json --verbose', project())
    await work.said('"message":"slow started"')
    work.child.kill('SIGTERM')
    const { code, out, err } = await work.done
    const lines = err
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { message: string }).message)
    expect(lines).toEqual(
      expect.arrayContaining(['connected', 'worker started', 'broken failed', 'slow completed', 'work ended']),
    )
    expect(JSON.parse(out)).toMatchObject({
      reason: 'SIGTERM',
      drained: true,
      jobs: { started: 2, completed: 1, failed: 1, retried: 0 },
    })
    expect(code).toBe(0)
  })

  test('O3 its port answers while it works and while it drains', async () => {
    const work = node([main, 'work', '--json', '--verbose', '--metrics-port', '0'], project(), { SLOW_MS: '3000' })
    await work.said('"message":"slow started"')
    const url = /"url":"([^"]+)"/.exec(work.err())?.[1] ?? ''
    const statusOf = async (path: string): Promise<number> => (await fetch(`${url}${path}`)).status
    await expect.poll(() => statusOf('/ready'), { timeout: RUN_MAX_MS }).toBe(200)
    work.child.kill('SIGTERM')
    await expect.poll(() => statusOf('/ready'), { timeout: RUN_MAX_MS, interval: 10 }).toBe(503)
    expect(await statusOf('/live')).toBe(200)
    expect((await work.done).code).toBe(0)
    await expect(fetch(`${url}/live`)).rejects.toThrow(/fetch failed/)
  })

  test('a second signal ends it at once with 130', async () => {
    const folder = project()
    const work = node([main, 'work', '--verbose'], folder, { SLOW_MS: '60000' })
    await work.said('slow started')
    work.child.kill('SIGINT')
    await work.said('takes no new jobs')
    work.child.kill('SIGINT')
    expect((await work.done).code).toBe(130)
  })
})

describe('the first ten minutes', { timeout: 3 * RUN_MAX_MS }, () => {
  test('O5 init, dev, add, look, stop: on a PostgreSQL of its own', async () => {
    const folder = temporaryFolder()
    // The server runs as a user who may do little when we may do everything.
    chmodSync(folder, 0o755)
    const init = await millrace('init', folder).done
    expect(init).toMatchObject({ code: 0, out: expect.stringContaining('next: npx millrace dev') as string })

    const dev = millrace('dev', folder)
    await dev.said('worker started')
    const added = await millrace(['jobs', 'add', 'hello', '{"name":"Ada"}', '--wait', '30s', '--json'], folder).done
    expect(JSON.parse(added.out), added.err).toMatchObject({ outcome: 'inserted', result: { greeting: 'Hello, Ada!' } })
    const { id } = JSON.parse(added.out) as { id: string }

    const status = await millrace('status --json', folder).done
    expect(JSON.parse(status.out), status.err).toMatchObject({
      health: 'ok',
      queues: [{ queue: 'default', counts: { completed: 1 }, workers: 1 }],
      workers: { alive: 1, slots: 10 },
    })
    const doctor = await millrace('doctor --json', folder).done
    expect(doctor.code, doctor.out + doctor.err).toBe(0)
    const migrations = await millrace('migrate status --json', folder).done
    expect(JSON.parse(migrations.out), migrations.err).toMatchObject({ upToDate: true })
    const why = await millrace(['why', id], folder).done
    expect(why.out).toContain('it completed')

    dev.child.kill('SIGINT')
    const { code, err } = await dev.done
    expect(code, err).toBe(0)
    expect(err).toMatch(/database; --show-url shows its password url=\S*millrace:\*\*\*@127\.0\.0\.1:\d+\/millrace/)
    expect(err).toContain('hello completed')

    const after = await millrace(['jobs', 'get', id, '--logs', '--json'], folder).done
    expect(JSON.parse(after.out), after.err).toMatchObject({
      job: { status: 'completed' },
      logs: [{ message: 'Hello, Ada!' }],
    })
  })
})
