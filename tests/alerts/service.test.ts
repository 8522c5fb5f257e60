// The service as a whole on the memory backend: facts from the store, decisions, notices through the queue, on virtual time.
import { expect, onTestFinished, test } from 'vitest'
import type { NotifyInput } from '../../src/alerts/notify-job.ts'
import type { SentNotice } from '../../src/alerts/sinks/sink.ts'
import { RULE_NAMES } from '../../src/core/alert-rules.ts'
import { acknowledge } from '../../src/core/alerting.ts'
import { createMillrace, defineJob, fail } from '../../src/index.ts'
import type { ServerState } from '../../src/store/diagnosis.ts'
import { httpReceiver } from './receivers.ts'
import { alertWorld } from './world.ts'
import type { AlertWorld } from './world.ts'

const MINUTE_MS = 60_000
const mail = defineJob({ name: 'send-mail', queue: 'mail', run: () => undefined })
const boom = defineJob({ name: 'boom', queue: 'fragile', run: () => fail('broken') })

async function producer({ backend, clock }: AlertWorld) {
  const mill = await createMillrace({ jobs: [mail, boom], backend, runtime: { clock }, maintenance: false })
  onTestFinished(() => mill.stop({ deadline: 0 }))
  return mill
}

const SHALLOW = { rules: { depth: { max: 3 }, 'nothing-processing': false } } as const

/** More jobs of mail than the rule above allows, and none of them. */
async function fill(mill: Awaited<ReturnType<typeof producer>>): Promise<void> {
  await mill.enqueueMany(Array.from({ length: 5 }, () => [mail, undefined] as const))
}

async function empty(mill: Awaited<ReturnType<typeof producer>>): Promise<void> {
  const { items } = await mill.jobs.list({ queue: 'mail', status: ['queued'] })
  for (const { id } of items) await mill.jobs.cancel(id)
}

test('O2 every rule fires and recovers through the service', async () => {
  let isBad = true
  const servers = (): readonly ServerState[] => [
    { kind: 'redis', name: 'r:1', pingMs: isBad ? null : 1, memory: { usedBytes: isBad ? 99 : 1, maxBytes: 100 } },
    { kind: 'postgres', name: 'p:1', pingMs: isBad ? null : 1 },
  ]
  const world = alertWorld(servers)
  Object.assign(world.backend, {
    dispatching: () =>
      Promise.resolve([{ queue: 'mail', mode: 'token', waiting: 0, backlog: 1, relayLagMs: isBad ? 99_000 : 0 }]),
  })
  const { clock, words } = world
  await world.supervisor({
    maintenance: false,
    pools: () => [{ pool: 'all', host: 'web1', isCrashLooping: isBad }],
    alerts: {
      rules: {
        depth: { max: 3 },
        'oldest-ready': { max: '2m' },
        'dead-letters': { max: 3 },
        'failure-ratio': { sample: 3 },
        'kind-failed': { kinds: { boom: {} } },
        // A server that is away says nothing of its memory, so it is looked at below.
        'redis-memory': { for: 0 },
      },
    },
  })
  await clock.advance(30_000)
  const mill = await producer(world)
  await fill(mill)
  await mill.enqueueMany(Array.from({ length: 4 }, () => [boom, undefined] as const))
  await mill.schedules.upsert('often', { every: '1m', job: mail })
  const worker = await clock.during(mill.work({ queues: ['fragile'] }))
  await clock.advance(10 * MINUTE_MS - 40_000)
  const expected = RULE_NAMES.filter((name) => name !== 'store-down' && name !== 'redis-memory')
  const fired = new Set(world.told.filter(({ kind }) => kind === 'firing').map(({ rule }) => rule))
  expect([...fired].sort()).toEqual([...expected].sort())
  expect(new Set(words()).size, 'each is told once').toBe(words().length)

  isBad = false
  await empty(mill)
  await mill.schedules.remove('often')
  const dead = await mill.deadLetters.list()
  for (const { id } of dead.items) await mill.jobs.remove(id)
  await clock.advance(15 * MINUTE_MS)
  const recovered = new Set(world.told.filter(({ kind }) => kind === 'recovered').map(({ rule }) => rule))
  expect([...recovered].sort()).toEqual([...expected].sort())
  expect([...(await world.notes.states()).values()].every(({ state }) => state === null)).toBe(true)
  await clock.during(worker.stop({ deadline: 0 }))
}, 60_000)

test('O2 the memory of Redis fires and recovers through the service', async () => {
  let usedBytes = 81
  const world = alertWorld(() => [{ kind: 'redis', name: 'r:1', pingMs: 1, memory: { usedBytes, maxBytes: 100 } }])
  await world.supervisor()
  await world.clock.advance(2 * MINUTE_MS)
  expect(world.words()).toEqual(['firing redis-memory:redis'])
  usedBytes = 60
  await world.clock.advance(2 * MINUTE_MS)
  expect(world.words()).toEqual(['firing redis-memory:redis', 'recovered redis-memory:redis'])
})

test('O2 a store that does not answer is told without it, and so is its return', async () => {
  const world = alertWorld()
  let isDown = false
  const due = world.backend.schedules.due.bind(world.backend.schedules)
  const broken = new Error('postgres://ops:hunter2@db/app refused')
  const down = <Value>(call: () => Promise<Value>) => (isDown ? Promise.reject(broken) : call())
  const backend = {
    ...world.backend,
    schedules: { ...world.backend.schedules, due: (limit: number) => down(() => due(limit)) },
    notes: { ...world.backend.notes, put: (write: never) => down(() => world.backend.notes.put(write)) },
  }
  const direct: string[] = []
  const send = ({ kind, key, text }: SentNotice): void => void direct.push(`${kind} ${key} ${text}`)
  await world.supervisor({
    backend,
    alerts: { sinks: { all: { type: 'custom', send } } },
    enqueue: () => Promise.reject(new Error('the queue is not for this')),
  })
  await world.clock.advance(MINUTE_MS)
  expect(direct).toEqual([])
  isDown = true
  await world.clock.advance(MINUTE_MS)
  expect(direct).toHaveLength(1)
  expect(direct[0]).toMatch(/^firing store-down:store the store does not answer: .*\(seen from host1\)$/)
  expect(direct[0]).not.toContain('hunter2')
  isDown = false
  await world.clock.advance(MINUTE_MS)
  expect(direct).toHaveLength(2)
  expect(direct[1]).toMatch(/^recovered store-down:store/)
  // What happened is in the log as soon as there is one.
  const log = await world.notes.log(0, 10)
  expect(log.map(({ kind, key }) => `${kind} ${key}`)).toEqual([
    'recovered store-down:store',
    'firing store-down:store',
  ])
})

test('O2 a leader that dies after it decided, and before or after it told, leaves one notice', async () => {
  for (const diesBefore of [true, false]) {
    const world = alertWorld()
    const { clock } = world
    const mill = await producer(world)
    const dying = async (input: NotifyInput, real: (input: NotifyInput) => Promise<unknown>): Promise<unknown> => {
      if (!diesBefore) await real(input)
      first.kill()
      return new Promise(() => undefined)
    }
    // Its own worker would die with a notice delivered and not settled, which is the one way to tell twice.
    const first = await world.supervisor({ alerts: SHALLOW, enqueue: dying, host: 'a', works: false })
    await clock.advance(1_000)
    await world.supervisor({ alerts: SHALLOW, host: 'b' })
    await fill(mill)
    await clock.advance(20_000)
    const [owing] = [...(await world.notes.states()).values()]
    expect(owing?.state).toMatchObject({ phase: 'firing', owed: [{ kind: 'firing' }] })
    await clock.advance(2 * MINUTE_MS)
    expect(world.words(), `dies ${diesBefore ? 'before' : 'after'} the enqueue`).toEqual(['firing depth:mail'])
    await empty(mill)
    await clock.advance(3 * MINUTE_MS)
    expect(world.words()).toEqual(['firing depth:mail', 'recovered depth:mail'])
  }
})

test('O2 a new leader goes on with what was pending and with what had grown', async () => {
  const world = alertWorld()
  const { clock } = world
  const mill = await producer(world)
  const alerts = { rules: { 'nothing-processing': { for: '2m' }, 'dead-letters': { max: 1_000, growth: 3 } } } as const
  const first = await world.supervisor({ alerts, host: 'a' })
  await clock.advance(20_000)
  await world.supervisor({ alerts, host: 'b' })
  await fill(mill)
  await clock.advance(100_000)
  expect(world.words()).toEqual([])
  first.kill()
  // The lease of the dead leader lapses after ten seconds; two minutes anew would take longer than this.
  await clock.advance(60_000)
  expect(world.words()).toEqual(['firing nothing-processing:mail'])
})

test('O2 two leaders at once tell once', async () => {
  const world = alertWorld()
  const { backend, clock } = world
  const mill = await producer(world)
  const always = { ...backend.workers, lead: () => Promise.resolve({ held: true, holder: 'me', term: 1 }) }
  for (const host of ['a', 'b'])
    await world.supervisor({ alerts: SHALLOW, host, backend: { ...backend, workers: always } })
  await fill(mill)
  await clock.advance(2 * MINUTE_MS)
  expect(world.words()).toEqual(['firing depth:mail'])
})

test('O2 acknowledged: reminders end, and the end is told', async () => {
  const world = alertWorld()
  const { clock, notes } = world
  const mill = await producer(world)
  await world.supervisor({ alerts: { ...SHALLOW, remind: '5m' } })
  await fill(mill)
  await clock.advance(11 * MINUTE_MS)
  expect(world.words()).toEqual(['firing depth:mail', 'reminder depth:mail', 'reminder depth:mail'])
  const entry = await notes.state('depth:mail')
  await notes.write(acknowledge(entry!.state!, { by: 'ada', atMs: clock.nowMs(), note: null }), entry!.version)
  await clock.advance(11 * MINUTE_MS)
  expect(world.words().slice(3)).toEqual(['acknowledged depth:mail'])
  await empty(mill)
  await clock.advance(3 * MINUTE_MS)
  expect(world.words().slice(4)).toEqual(['recovered depth:mail'])
  const log = await notes.log(0, 100)
  expect(log.map(({ kind }) => kind)).toEqual(['recovered', 'acknowledged', 'reminder', 'reminder', 'firing'])
})

test('O2 silenced: recorded, and told when it still fires at the end', async () => {
  const world = alertWorld()
  const { clock, notes } = world
  const mill = await producer(world)
  const silence = { id: 's-1', match: 'depth', queue: 'mail', reason: 'bulk load', by: 'ada', createdAtMs: 0 }
  await notes.addSilence({ ...silence, untilMs: clock.nowMs() + 5 * MINUTE_MS }, 5 * MINUTE_MS)
  await world.supervisor({ alerts: SHALLOW })
  await fill(mill)
  await clock.advance(4 * MINUTE_MS)
  expect(world.words()).toEqual([])
  expect(await notes.log(0, 10)).toMatchObject([{ kind: 'firing', quiet: true, note: 'silenced: bulk load' }])
  await clock.advance(2 * MINUTE_MS)
  expect(world.words()).toEqual(['firing depth:mail'])
})

test('O2 facts that are missing neither fire nor recover anything', async () => {
  const world = alertWorld()
  const { backend, clock } = world
  const mill = await producer(world)
  let isMissing = false
  const counts = backend.query.counts.bind(backend.query)
  const query = {
    ...backend.query,
    counts: (queue?: string) => (isMissing ? Promise.reject(new Error('slow')) : counts(queue)),
  }
  await world.supervisor({ alerts: SHALLOW, backend: { ...backend, query } })
  await fill(mill)
  await clock.advance(MINUTE_MS)
  expect(world.words()).toEqual(['firing depth:mail'])
  isMissing = true
  await empty(mill)
  await clock.advance(5 * MINUTE_MS)
  expect(world.words()).toEqual(['firing depth:mail'])
  isMissing = false
  await clock.advance(3 * MINUTE_MS)
  expect(world.words()).toEqual(['firing depth:mail', 'recovered depth:mail'])
})

test('O2 a notice that is given up is in the log of the alerts', async () => {
  const world = alertWorld()
  const mill = await producer(world)
  const send = (): never => {
    throw new Error('the fax has no paper')
  }
  await world.supervisor({ alerts: { ...SHALLOW, sinks: { fax: { type: 'custom', send } } } })
  await fill(mill)
  await world.clock.advance(15 * MINUTE_MS)
  const log = await world.notes.log(0, 10)
  expect(log).toMatchObject([
    { key: 'depth:mail', undelivered: { sink: 'fax', error: 'the fax has no paper' } },
    { key: 'depth:mail', kind: 'firing' },
  ])
  // Its dead letter is no reason for another alert.
  expect([...(await world.notes.states()).keys()]).toEqual(['depth:mail'])
})

test('O2 lanes of a queue are looked at where one has a limit', async () => {
  const world = alertWorld()
  const mill = await producer(world)
  await world.supervisor({
    alerts: { rules: { depth: { queues: { mail: { low: 2 } } }, 'nothing-processing': false } },
  })
  await fill(mill)
  await world.clock.advance(MINUTE_MS)
  expect(world.words()).toEqual([])
  await mill.enqueueMany(Array.from({ length: 3 }, () => [mail, undefined, { priority: 'low' }] as const))
  await world.clock.advance(MINUTE_MS)
  expect(world.words()).toEqual(['firing depth:mail/low'])
  await empty(mill)
  await world.clock.advance(3 * MINUTE_MS)
  expect(world.words()).toEqual(['firing depth:mail/low', 'recovered depth:mail/low'])
})

test('O2 a notice that its receiver refuses for now is tried again by the queue, five minutes later', async () => {
  // The receiver is real, so requests take real time; the time between tries is virtual.
  const to = await httpReceiver((response, no) => void response.writeHead(no <= 2 ? 500 : 200).end())
  const world = alertWorld()
  const { clock } = world
  const mill = await producer(world)
  const secret = 'a-secret-of-the-webhook'
  const url = `${to.url}/hooks/XXXXSECRETXXXX`
  const sinks = { hook: { type: 'webhook', url, secret, allowPrivate: true } } as const
  await world.supervisor({ alerts: { ...SHALLOW, sinks } })
  await fill(mill)
  // So long that a try of the virtual ten seconds is never over before the real answer: time moves in small steps.
  const arrived = async (count: number): Promise<void> => {
    for (let step = 0; step < 2_000 && to.received.length < count; step++) {
      await clock.advance(500)
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(to.received).toHaveLength(count)
    await expect.poll(() => clock.settle().then(() => to.received.length)).toBe(count)
  }
  await arrived(2)
  const beforeMs = clock.nowMs()
  await arrived(3)
  expect(clock.nowMs() - beforeMs).toBeGreaterThan(4 * MINUTE_MS)
  expect(new Set(to.received.map(({ json }) => json['dedupeKey'])).size).toBe(1)
  // Neither the jobs, nor what is kept of the alerts, nor the log has anything of the sink but its name.
  const { items } = await mill.jobs.list({ queue: 'millrace.alerts' })
  const [job] = items
  expect(job).toMatchObject({ name: 'millrace.notify', payload: { sink: 'hook' } })
  const kept = JSON.stringify([items, await world.notes.log(0, 100), [...(await world.notes.states()).values()]])
  const attempts = JSON.stringify(await mill.jobs.attempts(job!.id))
  for (const shown of [kept, attempts, ...world.lines]) {
    expect(shown).not.toContain('XXXXSECRETXXXX')
    expect(shown).not.toContain(secret)
  }
}, 60_000)
