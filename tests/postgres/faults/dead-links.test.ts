// Links that die without a word: nobody gets a reset, nothing is answered any more. New connections work.
import type { Submittable } from 'pg'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { Connections } from '../../../src/backends/postgres/connections.ts'
import { RowsQuery } from '../../../src/backends/postgres/rows-query.ts'
import type { Value } from '../../../src/backends/postgres/rows-query.ts'
import type { JobId } from '../../../src/core/job.ts'
import { postgres, silentLogger } from '../../../src/index.ts'
import { sleep, systemClock } from '../../../src/runtime/clock.ts'
import type { Clock } from '../../../src/runtime/clock.ts'
import { createRuntime } from '../../../src/runtime/runtime.ts'
import { finishedTopic } from '../../../src/store/wakeups.ts'
import { queueSettings } from '../../conformance/world.ts'
import { startFaultProxy } from '../../support/fault-proxy.ts'
import type { FaultProxy } from '../../support/fault-proxy.ts'
import { sharedPostgres } from '../../support/postgres-server.ts'
import type { PostgresServer } from '../../support/postgres-server.ts'
import { connectionsOf, useClient, useDatabase } from './databases.ts'
import { until } from './until.ts'

const ONE = { what: 'one', text: 'select 1' }
const ALL_ANSWERED = Array.from({ length: 5 }, () => 'answered')
let server: PostgresServer

beforeAll(async () => {
  server = await sharedPostgres(18)
}, 60_000)

async function useProxy(): Promise<FaultProxy> {
  const proxy = await startFaultProxy(server.port)
  onTestFinished(() => proxy.close())
  return proxy
}

function openConnections(url: string, statementTimeoutMs: number): Connections {
  const limits = { connectTimeoutMs: 1_000, statementTimeoutMs, lockTimeoutMs: 1_000 }
  const connections = new Connections({
    ...limits,
    url,
    poolMax: 2,
    applicationName: 'millrace',
    prepare: true,
    logger: silentLogger,
  })
  connections.open()
  return connections
}

/** A call on each kind of connection, and one behind another; the errors by their codes. */
async function callAll(connections: Connections): Promise<readonly string[]> {
  return toldOf([
    connections.run(ONE, []),
    connections.with('several', (client) => client.query(ONE.text)),
    connections.beat(ONE, []),
    connections.runOrdered('worker', ONE, []),
    connections.runOrdered('worker', ONE, []),
  ])
}

function toldOf(calls: readonly Promise<unknown>[]): Promise<readonly string[]> {
  return Promise.all(
    calls.map((call) =>
      call.then(
        () => 'answered',
        (error: { code: string }) => error.code,
      ),
    ),
  )
}

test(
  'D1 connections that a firewall forgot are given up after their time limit and made anew',
  { timeout: 60_000 },
  async () => {
    const { url } = await useDatabase(server)
    const proxy = await useProxy()
    const connections = openConnections(proxy.urlOf(url), 1_000)
    onTestFinished(() => connections.close().then(() => undefined))
    expect(await callAll(connections)).toEqual(ALL_ANSWERED)
    proxy.forget()
    const [behind, ...others] = (await callAll(connections)).toReversed()
    expect(others).toEqual(['STORE_TIMEOUT', 'STORE_TIMEOUT', 'STORE_TIMEOUT', 'STORE_TIMEOUT'])
    // The connection went with the one before it.
    expect(['STORE_TIMEOUT', 'STORE_UNAVAILABLE']).toContain(behind)
    expect(await callAll(connections)).toEqual(ALL_ANSWERED)
  },
)

test('a connection outlives the time limit of a query that was answered, or refused', async () => {
  const { url } = await useDatabase(server)
  const client = await useClient(url)
  const ask = (text: string): Promise<unknown> =>
    new Promise((resolve, reject) => {
      const query = new RowsQuery({ text, values: [], name: undefined, timeoutMs: 300 })
      query.callback = (error, rows) => (error === null ? resolve(rows![0]![0]) : reject(error))
      client.query(query as unknown as Submittable)
    })
  const pid = await ask('select pg_backend_pid()')
  await expect(ask('select 1 / 0')).rejects.toThrow('division by zero')
  await sleep(systemClock, 500)
  expect(await ask('select pg_backend_pid()')).toBe(pid)
})

test('a value that cannot be written fails its call alone', async () => {
  const { url } = await useDatabase(server)
  const connections = openConnections(url, 1_000)
  onTestFinished(() => connections.close().then(() => undefined))
  const echo = { what: 'echo', text: 'select $1::text' }
  const unwritable: unknown = {
    toString: () => {
      throw new Error('no text')
    },
  }
  const values = [unwritable as Value] // what the types forbid
  const calls = [connections.run(echo, values), connections.runOrdered('worker', echo, values)]
  for (const code of await toldOf(calls)) expect(['STORE_REFUSED', 'STORE_UNAVAILABLE']).toContain(code)
  expect(await callAll(connections)).toEqual(ALL_ANSWERED)
})

test('D1 a dead link cannot keep a process from stopping', async () => {
  const { url } = await useDatabase(server)
  const proxy = await useProxy()
  const connections = openConnections(proxy.urlOf(url), 30_000)
  await callAll(connections)
  expect(proxy.open).toBe(4)
  proxy.forget()
  // Idle ones, and one that waits for an answer.
  const call = connections.run(ONE, []).catch((error: { code: string }) => error.code)
  await systemClock.breathe()
  let isClosed = false
  void connections.close().then(() => (isClosed = true))
  await until(() => isClosed, 'the connections to be closed', { limitMs: 10_000 })
  expect(await call).toBe('STORE_UNAVAILABLE')
})

test('D1 hints on a dead link cannot keep a process from stopping', async () => {
  const { url } = await useDatabase(server)
  const proxy = await useProxy()
  const backend = postgres({ url: proxy.urlOf(url), poolMax: 4 })
  await backend.start()
  await backend.queues.ensure([queueSettings('mails')])
  proxy.forget()
  // Each end of a job that is awaited is a topic of its own.
  const { newId } = createRuntime()
  const topics = Array.from({ length: 1000 }, () => finishedTopic(newId() as JobId)) // minted as ids
  const unlisten = backend.wakeups.listen(topics, () => undefined)
  let isStopped = false
  void backend.stop().then(() => (isStopped = true))
  await until(() => isStopped, 'the backend to be stopped', { limitMs: 12_000 })
  unlisten()
})

test(
  'D3 a listener on a dead link finds out, connects again, and rings in case it missed something',
  { timeout: 60_000 },
  async () => {
    const { url, name } = await useDatabase(server)
    const proxy = await useProxy()
    const client = await useClient(server.url)
    // It asks every half minute; here every second and a half.
    const clock: Clock = {
      ...systemClock,
      timer: (delayMs, fire, options) => systemClock.timer(delayMs / 20, fire, options),
    }
    const backend = postgres({ url: proxy.urlOf(url), poolMax: 1, clock })
    await backend.start()
    onTestFinished(() => backend.stop())
    let rings = 0
    onTestFinished(backend.wakeups.listen(['config'], () => (rings += 1)))
    await until(async () => (await connectionsOf(client, name))['millrace listen'] === 1, 'the listener')
    proxy.forget()
    await until(() => rings > 0, 'it to come back')
  },
)
