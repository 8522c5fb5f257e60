// What a user may export from a module of his own: the declarations of the package name every type that its
// functions answer, so the compiler can write them down. The package is built and used as an installed one.
import { spawn } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { binPath } from '../../scripts/run-stage.ts'
import { ROOT } from '../tidy/source.ts'

const COMPILE_MAX_MS = 120_000
/** Ignored by git, and inside the repository so that installed packages are found. */
const folder = join(ROOT, '.millrace', `declarations-${process.pid}`)
const installed = join(folder, 'node_modules', 'millrace')

const USER = `
import { createMillrace, customRetry, defineJob, exponential, fixed, linear, memory, snooze } from 'millrace'
import type { RunContext } from 'millrace'
import { createTestMillrace, expectEnqueued } from 'millrace/testing'

export const policies = [exponential(), linear(), fixed(), customRetry(() => 1)] as const
export const policy = exponential()
export const backend = memory()
export const later = snooze('1s')
export const mail = defineJob({
  name: 'mail',
  unique: { by: ({ to }) => to },
  run: async ({ input, progress, metadata }: RunContext<{ to: string }>) => {
    progress(1)
    return { sent: input.to, seen: await metadata.entries() }
  },
})
export const tick = defineJob({ name: 'tick', run: () => snooze('1s') })

export const mill = await createMillrace({ jobs: [mail, tick], backend })
export const { jobs, queues, schedules, batches, deadLetters } = mill
export const metadata = mill.metadata('mail')
export const handle = await mill.enqueue('mail', { to: 'a' })
export const many = await mill.enqueueMany([[tick], [mail, { to: 'b' }]])
export const flow = await mill.flow({ job: mail, input: { to: 'a' }, children: [{ job: tick }] })
export const batch = await mill.batch('all', { onComplete: [tick] })
export const batchInfo = await batch.wait()
export const consumer = mill.consumer({ queues: ['default'] })
export const claimed = await consumer.claim()
export const settled = await consumer.ack(claimed[0]!)
export const list = await mill.queues.list()
export const page = await mill.jobs.list()
export const attempts = await mill.jobs.attempts(handle)
export const logs = await mill.jobs.logs(handle)
export const counts = await mill.jobs.counts()
export const answers = [await mill.jobs.cancel(handle), await mill.jobs.remove(handle)] as const
export const schedule = await mill.schedules.upsert('often', { job: tick, every: '1h' })
export const letters = [await mill.deadLetters.get(handle), await mill.deadLetters.replayMany({})] as const
export const unlisten = mill.on('failed', ({ error }) => void error)
export const worker = await mill.work()

export const kit = await createTestMillrace({ jobs: [mail, tick] })
export const live = await createTestMillrace({ jobs: [mail], mode: 'live' })
export const found = expectEnqueued(kit, mail)
export const report = await kit.drain()
export const run = await kit.perform(mail, { to: 'a' })
`

afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('everything that the API answers can be exported', { timeout: 2 * COMPILE_MAX_MS }, async () => {
  mkdirSync(installed, { recursive: true })
  cpSync(join(ROOT, 'package.json'), join(installed, 'package.json'))
  const dist = join(installed, 'dist')
  expect(await compile('-p', join(ROOT, 'tsconfig.build.json'), '--outDir', dist)).toBe('')
  // Only dist is published, so its maps must bring what they lead to.
  expect(readFileSync(join(dist, 'millrace.js.map'), 'utf8')).toContain('"sourcesContent":["//')
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'user', type: 'module' }))
  writeFileSync(join(folder, 'user.ts'), USER)
  const compilerOptions = {
    target: 'es2023',
    lib: ['es2023', 'esnext.disposable'],
    module: 'nodenext',
    types: ['node'],
    strict: true,
    declaration: true,
    outDir: 'out',
    // Declared for users who check libraries too.
    skipLibCheck: false,
  }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['user.ts'] }))
  expect(await compile('-p', folder)).toBe('')
  const declared = readFileSync(join(folder, 'out', 'user.d.ts'), 'utf8')
  expect(declared).toContain('policy: import("millrace").ExponentialRetry')
  expect(declared).not.toMatch(/\bany\b/)
})

/** What the compiler had to say. */
function compile(...args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { cwd: ROOT, timeout: COMPILE_MAX_MS }
    const child = spawn(process.execPath, [binPath('typescript'), ...args, '--pretty', 'false'], options)
    let output = ''
    child.stdout.on('data', (chunk) => (output += String(chunk)))
    child.stderr.on('data', (chunk) => (output += String(chunk)))
    child.once('error', reject)
    child.once('close', (code) => resolve(code === 0 ? '' : output || `it ended with ${code}`))
  })
}
