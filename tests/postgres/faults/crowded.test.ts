// A server of ten connections, with others on most of them.
import pg from 'pg'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { createMillrace, defineJob } from '../../../src/index.ts'
import { startTestPostgres } from '../../support/postgres-server.ts'
import type { TestPostgres } from '../../support/postgres-server.ts'
import { connectionsOf, useDatabase } from './databases.ts'
import { until } from './until.ts'

const CONNECTIONS_MAX = 10
const TOO_MANY = /too many connections: lower the pools of the processes, raise max_connections/
const quick = defineJob({ name: 'quick', run: () => ({ ok: true }) })
let server: TestPostgres

beforeAll(async () => {
  server = await startTestPostgres({ version: 18, settings: { max_connections: String(CONNECTIONS_MAX) } })
}, 60_000)
afterAll(() => server.stop('immediate'))

/** Others who use the server. */
function useOthers() {
  const clients: pg.Client[] = []
  const leave = async (): Promise<void> => {
    await Promise.all(clients.splice(0).map((client) => client.end()))
  }
  onTestFinished(leave)
  return {
    leave,
    /** Opens so many, or all that the server has left. */
    async come(count = Infinity): Promise<void> {
      for (let opened = 0; opened < count; opened++) {
        const client = new pg.Client(server.url)
        client.on('error', () => undefined)
        try {
          await client.connect()
        } catch {
          return
        }
        clients.push(client)
      }
    },
    query: (text: string, values: readonly string[]) => clients[0]!.query(text, [...values]),
    get first() {
      return clients[0]!
    },
  }
}

test('J13 on a server without a free connection the start says so, and what to do', async () => {
  const { url } = await useDatabase(server)
  const others = useOthers()
  await others.come()
  const start = () => createMillrace({ jobs: [quick], postgres: url })
  await expect(start()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', message: expect.stringMatching(TOO_MANY) })
  await others.leave()
  const mill = await start()
  await mill.stop()
})

test(
  'D2 a worker whose pool cannot grow goes on with what it has, and grows when there is room',
  { timeout: 60_000 },
  async () => {
    const { url, name } = await useDatabase(server)
    const others = useOthers()
    // Four are left: a heartbeat, hints, claims, and work that would like eight.
    await others.come(CONNECTIONS_MAX - 4)
    await using mill = await createMillrace({ jobs: [quick], postgres: { url, poolMax: 8 } })
    const lost: string[] = []
    mill.on('workerLost', ({ reason }) => lost.push(reason))
    await mill.work()
    await mill.enqueueAndWait(quick, undefined, {}, { timeout: '15s' })
    await others.come()

    // Each of these would take a connection of its own.
    const many = Array.from({ length: 30 }, () => mill.enqueueMany([[quick], [quick]]))
    const handles = (await Promise.all(many)).flat()
    await Promise.all(handles.map((handle) => handle.result({ timeout: '15s' })))
    const crowded = await connectionsOf(others.first, name)
    expect(crowded['millrace'] ?? 0).toBeLessThanOrEqual(3)

    await others.leave()
    await others.come(1)
    await until(
      async () => {
        await Promise.all(Array.from({ length: 10 }, () => mill.enqueueMany([[quick], [quick]])))
        return ((await connectionsOf(others.first, name))['millrace'] ?? 0) > 3
      },
      'the pool to grow again',
      { limitMs: 15_000 },
    )
    expect(lost).toEqual([])
  },
)
