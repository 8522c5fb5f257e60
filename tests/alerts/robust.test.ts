// Alerts when something about them goes wrong: one that cannot be told, a store that is away for some, several supervisors
// that see the same, long names.
import { expect, onTestFinished, test } from 'vitest'
import { createNotifyJob } from '../../src/alerts/notify-job.ts'
import { checkAlerts } from '../../src/alerts/options.ts'
import { pagerDutyEvent } from '../../src/alerts/sinks/pagerduty.ts'
import type { SentNotice } from '../../src/alerts/sinks/sink.ts'
import { webhookBody } from '../../src/alerts/sinks/webhook.ts'
import type { Notice } from '../../src/core/alerting.ts'
import { createMillrace, defineJob, fail } from '../../src/index.ts'
import type { RunContext } from '../../src/index.ts'
import { createRuntime } from '../../src/runtime/runtime.ts'
import type { ServerState } from '../../src/store/diagnosis.ts'
import { alertWorld } from './world.ts'
import type { AlertWorld } from './world.ts'

const MINUTE_MS = 60_000
const CUT = `${'x'.repeat(192)}😀 and more`
const boom = defineJob({ name: 'boom', queue: 'fragile', run: ({ input }: RunContext<string>) => fail(input) })

async function worker({ backend, clock }: AlertWorld) {
  const mill = await createMillrace({ jobs: [boom], backend, runtime: { clock }, maintenance: false })
  onTestFinished(() => mill.stop({ deadline: 0 }))
  await clock.during(mill.work({ queues: ['fragile'] }))
  return mill
}

const KINDS = { rules: { 'kind-failed': { kinds: { boom: {} } } } } as const

test('O2 an error whose text is cut in the middle of a character is told all the same', async () => {
  const world = alertWorld()
  await world.supervisor({ alerts: KINDS })
  const mill = await worker(world)
  await mill.enqueue(boom, CUT)
  await world.clock.advance(MINUTE_MS)
  expect(world.words()).toEqual(['firing kind-failed:boom'])
  expect(world.told[0]?.text).toMatch(/x\uFFFD$/)
})

test('O2 an alert that cannot be told to one sink is told to the others, and keeps no other alert back', async () => {
  const world = alertWorld()
  const [pager, team]: string[][] = [[], []]
  const to = (words: string[] | undefined) => (notice: SentNotice) => void words?.push(`${notice.kind} ${notice.key}`)
  const check = () => ['bad', 'good'].map((about) => ({ about, firing: true, text: about }))
  await world.supervisor({
    alerts: {
      sinks: { pager: { type: 'custom', send: to(pager) }, team: { type: 'custom', send: to(team) } },
      custom: [{ name: 'mine', check }],
    },
    enqueue: (input, real) =>
      input.sink === 'pager' && input.notice.name === 'bad' ? Promise.reject(new TypeError('never')) : real(input),
  })
  await world.clock.advance(2 * MINUTE_MS)
  expect(pager).toEqual(['firing mine:good'])
  expect(team?.toSorted()).toEqual(['firing mine:bad', 'firing mine:good'])
  expect(world.lines.some((line) => line.includes('could not be written or told'))).toBe(true)
})

test('O2 a failure of a kind is found also when another dead letter went away meanwhile', async () => {
  const world = alertWorld()
  await world.supervisor({ alerts: { rules: { ...KINDS.rules, 'failure-ratio': false } } })
  const mill = await worker(world)
  const other = await mill.enqueue(boom, 'first')
  await world.clock.advance(12 * MINUTE_MS)
  expect(world.words()).toEqual(['firing kind-failed:boom', 'recovered kind-failed:boom'])
  // Between two looks: as many as before.
  await mill.jobs.remove(other.id)
  await mill.enqueue(boom, 'second')
  await world.clock.advance(6 * MINUTE_MS)
  expect(world.words().slice(2)).toEqual(['firing kind-failed:boom'])
})

test('O2 servers of which nothing is known are neither down nor up again', async () => {
  const silent: readonly ServerState[] = [{ kind: 'redis', name: 'r:1', pingMs: null }]
  let answer: () => Promise<readonly ServerState[]> = () => Promise.resolve(silent)
  const world = alertWorld(() => [])
  Object.assign(world.backend, { servers: () => answer() })
  await world.supervisor()
  await world.clock.advance(MINUTE_MS)
  expect(world.words()).toEqual(['firing redis-down:redis'])
  answer = () => new Promise(() => undefined)
  await world.clock.advance(2 * MINUTE_MS)
  expect(world.words()).toEqual(['firing redis-down:redis'])
  answer = () => Promise.resolve([{ kind: 'redis', name: 'r:1', pingMs: 1 }])
  await world.clock.advance(MINUTE_MS)
  expect(world.words()).toEqual(['firing redis-down:redis', 'recovered redis-down:redis'])
})

test('O2 several supervisors that miss a server tell of one alert, each by its name, and show it while the store answers', async () => {
  let isUp = false
  const world = alertWorld(() => [
    { kind: 'postgres', name: 'p:1', pingMs: 1 },
    { kind: 'redis', name: 'r:1', pingMs: isUp ? 1 : null },
  ])
  for (const host of ['a', 'b']) await world.supervisor({ host })
  await world.clock.advance(MINUTE_MS)
  expect(world.told.map(({ kind, host }) => [kind, host])).toEqual([
    ['firing', 'a'],
    ['firing', 'b'],
  ])
  // One key for PagerDuty and for who joins webhooks; a key each for who drops what he has seen.
  const joined = world.told.map((notice) => [pagerDutyEvent(notice).dedup_key, webhookBody(notice).alert])
  expect(new Set(joined.map(String)).size).toBe(1)
  expect(new Set(world.told.map(({ dedupeKey }) => dedupeKey)).size).toBe(2)
  const sights = await world.notes.sights()
  expect(sights.map(({ host, state }) => [host, state.key, state.phase])).toEqual([
    ['a', 'redis-down:redis', 'firing'],
    ['b', 'redis-down:redis', 'firing'],
  ])
  expect((await world.notes.log(0, 10)).map(({ kind }) => kind)).toEqual(['firing', 'firing'])
  isUp = true
  await world.clock.advance(MINUTE_MS)
  expect(world.words().slice(2)).toEqual(['recovered redis-down:redis', 'recovered redis-down:redis'])
  expect(await world.notes.sights()).toEqual([])
})

test('O2 the log shows the newest of very many', async () => {
  const { notes } = alertWorld()
  const entry = { kind: 'firing', severity: 'info', text: 'x', incident: 'i', quiet: false, note: null } as const
  for (let no = 0; no < 5_100; no++) await notes.record({ ...entry, key: `k${no}`, atMs: 1_000 + no })
  expect((await notes.log(0, 2)).map(({ key }) => key)).toEqual(['k5099', 'k5098'])
})

test('O2 notices about a thing with a long name stay apart: by sink, and at PagerDuty', () => {
  const plan = checkAlerts({ sinks: { one: { type: 'log' } } })
  const { unique, group } = createNotifyJob(plan, { runtime: createRuntime() })
  const named = (key: string): Notice => ({
    kind: 'firing',
    key,
    incident: `${key}@1893456000000`,
    no: 1,
    quiet: false,
    rule: 'depth',
    connection: 'default',
    name: 'x',
    queue: null,
    severity: 'info',
    text: '',
    value: 0,
    limit: 0,
    startedAtMs: 0,
    atMs: 0,
    note: null,
  })
  const long = 'k'.repeat(199)
  const inputs = ['one', 'two'].flatMap((sink) => ['a', 'b'].map((end) => ({ sink, notice: named(`${long}${end}`) })))
  const by = typeof unique === 'object' && typeof unique.by === 'function' ? unique.by : undefined
  for (const keyOf of [by, group]) {
    const keys = inputs.map((input) => keyOf?.(input))
    expect(new Set(keys).size).toBe(4)
    expect(keys.every((key) => key !== undefined && key.length <= 200)).toBe(true)
  }
  const dedup = (system: string, end: string) =>
    pagerDutyEvent({ ...named(`${long}${end}`), system, dedupeKey: '' }).dedup_key
  expect(dedup('s'.repeat(100), 'a')).not.toBe(dedup('s'.repeat(100), 'b'))
})
