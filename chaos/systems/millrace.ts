// Millrace on each of its stores, as a user would run it. Its own record of every job is compared with the books.
import pg from 'pg'
import { createMillrace, defineJob, fixed } from '../../src/index.ts'
import type { Millrace, StoreOptions } from '../../src/index.ts'
import type { Census, ChaosJob, ChaosSystem, Place, Recorded } from '../system.ts'

export const QUEUE = 'chaos'
export const KIND = 'plain'

/** Of a ttl, in heartbeats. */
const BEATS = 4
const STOP_MAX = '5s'
const PAGE = 200

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
  async inspect(place) {
    const mill = await open(place)
    try {
      return await censusOf(mill)
    } finally {
      await mill.stop()
    }
  },
  record: (place) => (place.postgres === undefined ? recordOfRedis(place) : recordOfPostgres(place.postgres)),
}

function open(place: Place, run: (job: ChaosJob) => Promise<void> = () => Promise.resolve()): Promise<Millrace> {
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
  return createMillrace({ jobs: [plain], ...store })
}

async function censusOf(mill: Millrace): Promise<Census> {
  const [row] = await mill.jobs.counts(QUEUE)
  if (row === undefined) return { waiting: 0, running: 0, failed: 0, completed: 0 }
  const { queued, scheduled, blocked, dispatched, running, failed, completed } = row.counts
  return { waiting: queued + scheduled + blocked + dispatched, running, failed, completed }
}

async function recordOfPostgres(url: string): Promise<readonly Recorded[]> {
  const client = new pg.Client(url)
  await client.connect()
  try {
    const { rows } = await client.query<Recorded>(
      `select r.id::text, r.status, count(l.id) filter (where l.status = 'success')::int as successes,
         count(l.id)::int as rows
       from millrace.job_records r left join millrace.job_logs l on l.job_id = r.id
       where r.queue_name = $1 group by 1, 2`,
      [QUEUE],
    )
    return rows
  } finally {
    await client.end()
  }
}

async function recordOfRedis(place: Place): Promise<readonly Recorded[]> {
  const mill = await open(place)
  try {
    const found: Recorded[] = []
    let cursor: string | undefined
    do {
      const page = await mill.jobs.list({ queue: QUEUE }, { limit: PAGE, ...(cursor !== undefined && { cursor }) })
      const recorded = page.items.map(async ({ id, status }): Promise<Recorded> => {
        const rows = await mill.jobs.attempts(id)
        return { id, status, rows: rows.length, successes: rows.filter((row) => row.status === 'success').length }
      })
      found.push(...(await Promise.all(recorded)))
      cursor = page.nextCursor
    } while (cursor !== undefined)
    return found
  } finally {
    await mill.stop()
  }
}
