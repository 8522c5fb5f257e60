// Millrace on each of its stores, as a user would run it. Its own record of every job is compared with the books.
import pg from 'pg'
import { booksOf } from '../../tests/redis/faults/books.ts'
import { createMillrace, defineJob, fixed } from '../../src/index.ts'
import type { JobStatus, Millrace, StoreOptions } from '../../src/index.ts'
import { jobsIn } from './millrace-jobs.ts'
import { SIDE_JOBS, SIDE_QUEUE, openSideLoad, sideFacts } from './millrace-side.ts'
import type { Census, ChaosJob, ChaosSystem, Place, Recorded } from '../system.ts'

export const QUEUE = 'chaos'
export const KIND = 'plain'

/** Of a ttl, in heartbeats. */
const BEATS = 4
const STOP_MAX = '5s'

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
      async enqueue({ id, longMs, group }) {
        await mill.enqueue(KIND, { longMs }, { id, ...(group !== undefined && { group }) })
      },
      close: () => mill.stop(),
    }
  },
  async openWorker(place, { concurrency, ttlMs }, run) {
    const mill = await open(place, run)
    const times = ttlMs === undefined ? {} : { ttl: ttlMs, heartbeat: ttlMs / BEATS }
    await mill.work({ concurrency, ...times })
    return { close: () => mill.stop({ deadline: STOP_MAX }) }
  },
  inspect: (place) => look(place, censusOf),
  async openSideLoad(place) {
    const mill = await open(place)
    const load = await openSideLoad(mill)
    return {
      async close() {
        await load.close()
        await mill.stop()
      },
    }
  },
  sideFacts: (place) => look(place, sideFacts),
  record: (place) => (place.postgres === undefined ? look(place, recordOf) : recordOfPostgres(place.postgres)),
}

async function look<Seen>(place: Place, see: (mill: Millrace) => Promise<Seen>): Promise<Seen> {
  const mill = await open(place)
  try {
    return await see(mill)
  } finally {
    await mill.stop()
  }
}

function open(place: Place, run: (job: ChaosJob) => Promise<string> = () => Promise.resolve('')) {
  const plain = defineJob({
    name: KIND,
    queue: QUEUE,
    attempts: 5,
    retry: fixed({ delay: 10, jitter: 0 }),
    run: ({ job, input }: { job: { readonly id: string }; input: { readonly longMs: number } }) =>
      run({ id: job.id, longMs: input.longMs }),
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
  const results = new Map<string, unknown>()
  for await (const { id, result } of jobsIn(mill, QUEUE)) results.set(id, result)
  return (await booksOf(mill, QUEUE)).map((one) => ({ ...one, result: textOrNull(results.get(one.id)) }))
}

function textOrNull(result: unknown): string | null {
  return typeof result === 'string' ? result : null
}

async function recordOfPostgres(url: string): Promise<readonly Recorded[]> {
  const client = new pg.Client(url)
  await client.connect()
  try {
    const { rows } = await client.query<Recorded & { readonly result: unknown }>(
      `select r.id::text, r.status, r.result::text::json as result,
         count(l.id) filter (where l.status = 'success')::int as successes, count(l.id)::int as rows
       from millrace.job_records r left join millrace.job_logs l on l.job_id = r.id
       where r.queue_name = $1 group by r.id, r.status, r.result::text`,
      [QUEUE],
    )
    return rows.map((row) => ({ ...row, result: textOrNull(row.result) }))
  } finally {
    await client.end()
  }
}
