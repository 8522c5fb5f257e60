// Millrace on each of its stores, as a user would run it. Its own record of every job is compared with the books.
import pg from 'pg'
import { createMillrace, defineJob, fixed } from '../../src/index.ts'
import type { EnqueueOptions, JobStatus, Millrace, StoreOptions } from '../../src/index.ts'
import { pagesIn } from './millrace-jobs.ts'
import { SIDE_JOBS, SIDE_QUEUE, enqueueBatch, openSideLoad, sideFacts } from './millrace-side.ts'
import type { Census, ChaosJob, ChaosSystem, Place, Recorded } from '../system.ts'

export const QUEUE = 'chaos'
export const KIND = 'plain'

/** Of a ttl, in heartbeats. */
const BEATS = 4
export const STOP_MAX_MS = 3_000

export const millrace: ChaosSystem = {
  name: 'millrace',
  backends: ['postgres', 'redis', 'hybrid'],
  settings: 'defaults; 5 attempts, retry after 10 ms; heartbeat a quarter of the ttl where a scenario sets one',
  async prepare(place) {
    await (await open(place)).stop()
  },
  async openProducer(place) {
    const mill = await open(place)
    return {
      async enqueue(job) {
        await mill.enqueue(KIND, inputOf(job), optionsOf(job))
      },
      async enqueueMany(jobs) {
        await mill.enqueueMany(jobs.map((job) => [KIND, inputOf(job), optionsOf(job)] as const))
      },
      close: () => mill.stop(),
    }
  },
  async openWorker(place, { concurrency, workers = 1, ttlMs }, run) {
    const mill = await open(place, run)
    const times = ttlMs === undefined ? {} : { ttl: ttlMs, heartbeat: ttlMs / BEATS }
    for (let no = 0; no < workers; no++) await mill.work({ concurrency, ...times })
    return { close: () => mill.stop({ deadline: STOP_MAX_MS }) }
  },
  inspect: (place) => look(place, censusOf),
  async openSideLoad(place, ledger) {
    const mill = await open(place)
    const load = await openSideLoad(mill, ledger)
    return {
      async close() {
        await load.close()
        await mill.stop()
      },
    }
  },
  sideFacts: (place) => look(place, sideFacts),
  enqueueBatch: (place, batch) => look(place, (mill) => enqueueBatch(mill, batch)),
  record: (place) => (place.postgres === undefined ? look(place, recordOf) : recordOfPostgres(place.postgres)),
}

async function look<Seen>(place: Place, see: (mill: OpenMill) => Promise<Seen>): Promise<Seen> {
  const mill = await open(place)
  try {
    return await see(mill)
  } finally {
    await mill.stop()
  }
}

type OpenMill = Awaited<ReturnType<typeof open>>

type Input = Pick<ChaosJob, 'longMs' | 'firstMs'>

function inputOf({ longMs, firstMs }: ChaosJob): Input {
  return { longMs, ...(firstMs !== undefined && { firstMs }) }
}

function optionsOf({ id, group, timeoutMs, dueMs }: ChaosJob): EnqueueOptions {
  return {
    id,
    ...(group !== undefined && { group }),
    ...(timeoutMs !== undefined && { timeout: timeoutMs }),
    ...(dueMs !== undefined && { runAt: dueMs }),
  }
}

function open(place: Place, run: (job: ChaosJob) => Promise<string> = () => Promise.resolve('')) {
  const plain = defineJob({
    name: KIND,
    queue: QUEUE,
    attempts: 5,
    retry: fixed({ delay: 10, jitter: 0 }),
    run: ({ job, input }: { job: { readonly id: string }; input: Input }) => run({ id: job.id, ...input }),
  })
  const store: StoreOptions = {
    ...(place.postgres !== undefined && { postgres: place.postgres }),
    ...(place.redis !== undefined && { redis: place.redis }),
  }
  return createMillrace({ jobs: [plain, ...SIDE_JOBS], ...store })
}

async function censusOf(mill: Millrace): Promise<Census> {
  const found = (await mill.jobs.counts()).filter(({ queue }) => queue === QUEUE || queue === SIDE_QUEUE)
  const sum = (...statuses: readonly JobStatus[]): number =>
    found.reduce((all, { counts }) => all + statuses.reduce((own, status) => own + counts[status], 0), 0)
  return {
    waiting: sum('queued', 'scheduled', 'blocked', 'dispatched'),
    running: sum('running'),
    failed: sum('failed'),
    completed: sum('completed'),
  }
}

async function recordOf(mill: Millrace): Promise<readonly Recorded[]> {
  const found: Recorded[] = []
  for await (const page of pagesIn(mill, QUEUE)) {
    const recorded = page.map(async ({ id, status, attemptCount, result }): Promise<Recorded> => {
      const rows = await mill.jobs.attempts(id)
      const successes = rows.filter((row) => row.status === 'success').length
      return { id, status, attempts: attemptCount, rows: rows.length, successes, result: textOrNull(result) }
    })
    found.push(...(await Promise.all(recorded)))
  }
  return found
}

function textOrNull(result: unknown): string | null {
  return typeof result === 'string' ? result : null
}

async function recordOfPostgres(url: string): Promise<readonly Recorded[]> {
  const client = new pg.Client(url)
  await client.connect()
  try {
    const { rows } = await client.query<Recorded & { readonly result: unknown }>(
      `select r.id::text, r.status, r.attempt_count as attempts, r.result::text::json as result,
         count(l.id) filter (where l.status = 'success')::int as successes, count(l.id)::int as rows
       from millrace.job_records r left join millrace.job_logs l on l.job_id = r.id
       where r.queue_name = $1 group by r.id, r.status, r.attempt_count, r.result::text`,
      [QUEUE],
    )
    return rows.map((row) => ({ ...row, result: textOrNull(row.result) }))
  } finally {
    await client.end()
  }
}
