// The disk of the server is full: what cannot be written is refused, what was acknowledged stays, and work goes on by
// itself when there is room again.
import { expect, onTestFinished, test } from 'vitest'
import { createMillrace } from '../../../src/index.ts'
import { freshDatabase, startTestPostgres } from '../../support/postgres-server.ts'
import { useClient } from './databases.ts'
import { createJobs } from './fixtures/jobs.ts'
import { liveJobs } from './ledger.ts'
import { moveToSmallDisk } from './small-disk.ts'
import { until } from './until.ts'

const DISK_MB = 192
const FILLER = 'x'.repeat(3_000)

test(
  'J2 on a full disk an enqueue is refused with what to do, and nothing acknowledged is lost',
  { timeout: 90_000 },
  async () => {
    const settings = { shared_buffers: '16MB', max_wal_size: '64MB', min_wal_size: '32MB', autovacuum: 'off' }
    const server = await startTestPostgres({ version: 18, settings })
    onTestFinished(() => server.stop('immediate'))
    const disk = await moveToSmallDisk(server, DISK_MB)
    onTestFinished(async () => {
      await server.stop('immediate')
      disk.unmount()
    })
    const { url } = await freshDatabase(server)
    const jobs = createJobs({ onRun: () => undefined, held: () => Promise.resolve() })
    const acked: string[] = []
    await using mill = await createMillrace({ jobs, postgres: { url, poolMax: 4 } })
    const lost: string[] = []
    mill.on('workerLost', ({ reason }) => lost.push(reason))
    const enqueue = async (): Promise<void> => {
      acked.push((await mill.enqueue('plain', 0, { meta: { filler: FILLER } })).id)
    }
    await mill.work()
    for (let count = 0; count < 20; count++) await enqueue()

    disk.fill()
    let refusal: unknown
    for (let count = 0; count < 5_000 && refusal === undefined; count++) {
      await enqueue().catch((error: unknown) => {
        refusal = error
      })
    }
    expect(refusal).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true })
    expect((refusal as Error).message).toMatch(/disk full: the server cannot write until space is freed/)
    // Reading goes on.
    expect(await mill.jobs.get(acked[0]!)).not.toBeNull()

    disk.free()
    await until(
      async () =>
        enqueue().then(
          () => true,
          () => false,
        ),
      'an enqueue to be taken again',
      { limitMs: 10_000 },
    )
    const client = await useClient(url)
    await until(async () => (await liveJobs(client)) === 0, 'everything to drain')
    await server.restart('immediate')
    const after = await useClient(url)
    const { rows } = await after.query<{ id: string }>("select id::text from millrace.jobs where status = 'completed'")
    const completed = new Set(rows.map(({ id }) => id))
    expect(acked.filter((id) => !completed.has(id))).toEqual([])
    expect(lost).toEqual([])
  },
)
