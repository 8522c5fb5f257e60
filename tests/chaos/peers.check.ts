// The peers as `npm run chaos` plays them: what their tables say after a worker was killed in the middle of its jobs, and
// when another has done the rest. Run by hand, see peers.config.ts: the peers are not installed where `npm test` runs.
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { uuidv7 } from 'uuidv7'
import { beforeAll, expect, test } from 'vitest'
import { PEERS_VARIABLE, preparePeers } from '../../bench/peers.ts'
import { readBooks } from '../../chaos/books.ts'
import type { BookFiles } from '../../chaos/books.ts'
import { query } from '../../chaos/query.ts'
import { programOn, startProcess } from '../../chaos/start-process.ts'
import type { ChaosProcess, Program } from '../../chaos/start-process.ts'
import type { Backend, Census, ChaosSystem, Place } from '../../chaos/system.ts'
import { systemOf } from '../../chaos/systems/catalogue.ts'
import { ROOT } from '../../scripts/compile.ts'
import { freshDatabase, sharedPostgres } from '../support/postgres-server.ts'
import { startRedis } from '../support/redis-server.ts'
import { runDirectory } from '../support/run-directory.ts'
import { until } from '../support/until.ts'

const JOBS = 50
const CONCURRENCY = 5
const LONG_MS = 150
const TTL_MS = 5_000
/** Heartbeats of pg-boss are the slowest: ten seconds, and a pass. */
const REST_MAX_MS = 20_000
const TEST_MAX_MS = 60_000
const PREPARE_MAX_MS = 15 * 60_000

let program: Program

beforeAll(async () => {
  const { directory, node } = await preparePeers(ROOT)
  process.env[PEERS_VARIABLE] = directory
  program = await programOn(node)
}, PREPARE_MAX_MS)

test.each([
  ['bullmq', 'redis'],
  ['bullmq', 'postgres'],
  ['pg-boss', 'postgres'],
] as const)(
  '%s on %s: jobs of a killed worker are counted as running, then run again, and all complete',
  async (name, backend) => {
    const { system, place, files } = await setup(name, backend)
    const held = await killInTheMiddle(system, place, files)
    expect(held.running).toBeGreaterThan(0)
    expect(held.running).toBeLessThanOrEqual(CONCURRENCY)
    expect(held).toMatchObject({ failed: 0, waiting: JOBS - held.running - (held.completed ?? 0) })

    const rest = await startWorker(system, place, files)
    await until('all to complete', async () => (await system.inspect(place)).completed === JOBS, {
      withinMs: REST_MAX_MS,
      pollMs: 100,
    })
    await rest.stop()
    expect(await system.inspect(place)).toEqual({ waiting: 0, running: 0, failed: 0, completed: JOBS })
    expect(endedIn(files)).toBe(JOBS)
    expect(interruptedIn(files)).toBeGreaterThan(0)
  },
  TEST_MAX_MS,
)

test(
  'graphile-worker on postgres: jobs of a killed worker are counted as running for as long as anybody looks, the others complete',
  async () => {
    const { system, place, files } = await setup('graphile-worker', 'postgres')
    const held = await killInTheMiddle(system, place, files)
    expect(held.running).toBeGreaterThan(0)
    expect(held.running).toBeLessThanOrEqual(CONCURRENCY)
    expect(held).toMatchObject({ failed: 0, completed: null })

    const rest = await startWorker(system, place, files)
    await until('the others to end', () => endedIn(files) >= JOBS - held.running)
    // Its stop does not wait for the statement that completes the last job.
    await until('them to complete', async () => sumOf(await system.inspect(place)) === held.running)
    await rest.stop()
    expect(await system.inspect(place)).toEqual({ waiting: 0, running: held.running, failed: 0, completed: null })
  },
  TEST_MAX_MS,
)

test.each([
  ['bullmq', 'redis'],
  ['bullmq', 'postgres'],
  ['pg-boss', 'postgres'],
] as const)(
  '%s on %s: a job that fails at every attempt is counted as failed',
  async (name, backend) => {
    const { system, place } = await setup(name, backend, 1)
    let runs = 0
    const worker = await system.openWorker(place, { concurrency: 1 }, () => {
      runs += 1
      return Promise.reject(new Error('planned'))
    })
    await until('the failure', async () => (await system.inspect(place)).failed === 1, { pollMs: 100 })
    await worker.close()
    expect(await system.inspect(place)).toEqual({ waiting: 0, running: 0, failed: 1, completed: 0 })
    expect(runs).toBe(5)
  },
  TEST_MAX_MS,
)

test('graphile-worker on postgres: a job without attempts left is counted as failed', async () => {
  const { system, place } = await setup('graphile-worker', 'postgres', 2)
  // Its own attempts take days.
  await query(
    place,
    `select graphile_worker.permanently_fail_jobs(array[(select min(id) from graphile_worker._private_jobs)])`,
  )
  expect(await system.inspect(place)).toEqual({ waiting: 1, running: 0, failed: 1, completed: null })
})

interface Setup {
  readonly system: ChaosSystem
  readonly place: Place
  readonly files: BookFiles
}

/** Jobs in a fresh store; nobody works yet. */
async function setup(name: string, backend: Backend, jobs = JOBS): Promise<Setup> {
  const system = await systemOf(name)
  const place: Place =
    backend === 'redis'
      ? { backend, redis: (await startRedis()).url }
      : { backend, postgres: (await freshDatabase(await sharedPostgres(18))).url }
  const folder = mkdtempSync(join(await runDirectory(), 'peers-'))
  await system.prepare(place)
  const producer = await system.openProducer(place)
  for (let no = 0; no < jobs; no++) await producer.enqueue({ id: uuidv7(), longMs: LONG_MS })
  await producer.close()
  expect(await system.inspect(place)).toMatchObject({ waiting: jobs, running: 0, failed: 0 })
  return { system, place, files: { ledger: join(folder, 'ledger'), runs: join(folder, 'runs') } }
}

async function killInTheMiddle(system: ChaosSystem, place: Place, files: BookFiles): Promise<Census> {
  const worker = await startWorker(system, place, files)
  await until('jobs to end', () => endedIn(files) >= CONCURRENCY * 2)
  // Right after a start, so that a handler is under way.
  const started = readBooks(files).runs.length
  await until('a start', () => readBooks(files).runs.length > started)
  worker.signal('SIGKILL')
  await until('its end', () => !worker.isAlive)
  return await system.inspect(place)
}

function startWorker({ name }: ChaosSystem, place: Place, { runs }: BookFiles): Promise<ChaosProcess> {
  const own = { role: 'worker', concurrency: CONCURRENCY, ttlMs: TTL_MS, pill: 'none', blocker: 'none' } as const
  return startProcess(program, { system: name, place, runs, ...own })
}

function sumOf({ waiting, running, failed }: Census): number {
  return waiting + running + failed
}

/** Runs that never came to their end. */
function interruptedIn(files: BookFiles): number {
  return readBooks(files).runs.filter(({ endMs }) => endMs === undefined).length
}

function endedIn(files: BookFiles): number {
  return new Set(readBooks(files).runs.flatMap(({ id, endMs }) => (endMs === undefined ? [] : [id]))).size
}
