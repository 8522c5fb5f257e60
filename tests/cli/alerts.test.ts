// `millrace alerts` over a memory store that has alerts in it.
import { expect, test } from 'vitest'
import { createAlertNotes } from '../../src/alerts/alert-notes.ts'
import { logEntryOf } from '../../src/alerts/alert-notes.ts'
import type { AlertOptions } from '../../src/alerts/options.ts'
import { checkAlerts } from '../../src/alerts/options.ts'
import type { SentNotice } from '../../src/alerts/sinks/sink.ts'
import { evaluate } from '../../src/core/alerting.ts'
import type { AlertFacts } from '../../src/core/alert-facts.ts'
import { httpReceiver } from '../alerts/receivers.ts'
import { setup } from './harness.ts'

const QUEUE = {
  paused: false,
  ready: 0,
  lanes: null,
  running: 0,
  oldestReadyMs: null,
  workers: 1,
  deadLetters: 0,
  isStalled: false,
  recent: { completed: 0, failed: 0 },
} as const

/** As a leader leaves it: depth of mail (warning) and an old job of mail (critical) fire. */
async function firing(alerts: AlertOptions = {}) {
  const at = await setup({ alerts })
  const notes = createAlertNotes(at.backend.notes)
  const nowMs = Date.now()
  const queues = [{ ...QUEUE, queue: 'mail', ready: 20_000, oldestReadyMs: 2 * 60 * 60_000 }]
  const parts = { kinds: [], schedules: [], relay: [], servers: [] }
  const facts: AlertFacts = { nowMs, stores: [{ connection: 'default', queues, ...parts }], pools: [] }
  const { rules } = checkAlerts(alerts)
  const { changes } = evaluate({ rules, facts, states: new Map(), silences: [], nowMs, stepMaxMs: 45_000 })
  for (const { after } of changes) {
    await notes.write({ ...after!, owed: [] }, 0)
    for (const notice of after!.owed) await notes.record(logEntryOf(notice))
  }
  return { ...at, notes }
}

test('O2 alerts ls shows what fires, and ends with 4 while something critical does', async () => {
  const { run } = await firing()
  const shown = await run('alerts ls')
  expect(shown.code).toBe(4)
  expect(shown.out).toMatch(/^ALERT +SEVERITY +STATE/)
  expect(shown.out).toMatch(/oldest-ready:mail +critical +firing .*has waited 2h/)
  expect(shown.out).toMatch(/depth:mail +warning +firing .*20000 jobs ready/)
  const { json } = await run('alerts ls --json')
  expect(json).toMatchObject({
    schemaVersion: 1,
    alerts: [
      { key: 'oldest-ready:mail', severity: 'critical', phase: 'firing', acknowledged: null, silence: null },
      { key: 'depth:mail', severity: 'warning', value: 20_000, limit: 10_000 },
    ],
    silences: [],
  })
  const all = await run('alerts ls --all --json')
  expect(all.json['log']).toMatchObject([{ kind: 'firing' }, { kind: 'firing' }])
})

test('O2 alerts ls without alerts ends with 0', async () => {
  const { run } = await setup()
  expect(await run('alerts ls')).toMatchObject({ code: 0, out: 'nothing fires\n' })
})

test('O2 alerts ls shows what single supervisors see; it cannot be acknowledged', async () => {
  const { run, notes } = await firing()
  const [entry] = (await notes.states()).values()
  const state = { ...entry!.state!, key: 'redis-down:redis', rule: 'redis-down', severity: 'critical' } as const
  await notes.show({ host: 'web1', state: { ...state, text: 'Redis does not answer (seen from web1)' } })
  await run('alerts silence oldest-ready --for 1h --reason x')
  const { code, json } = await run('alerts ls --json')
  expect(code).toBe(4)
  expect(json['alerts']).toContainEqual(expect.objectContaining({ key: 'redis-down:redis', host: 'web1' }))
  expect(json['alerts']).toContainEqual(expect.objectContaining({ key: 'depth:mail', host: null }))
  expect(await run('alerts ack redis-down:redis')).toMatchObject({
    code: 3,
    err: expect.stringContaining('Silence it instead') as string,
  })
  await notes.hide({ host: 'web1', state })
  expect(await run('alerts ls')).toMatchObject({ code: 0 })
})

test('O2 with alerts off in the configuration the commands say so', async () => {
  const { run } = await setup({ alerts: false })
  expect(await run('alerts ls')).toMatchObject({ code: 0, out: expect.stringContaining('alerts are off') as string })
  expect((await run('alerts ls --json')).json).toMatchObject({ alerts: [], silences: [] })
  expect(await run('alerts rules')).toMatchObject({ code: 0, out: expect.stringContaining('alerts are off') as string })
  expect(await run('alerts test log')).toMatchObject({
    code: 3,
    err: expect.stringContaining('alerts are off') as string,
  })
  expect(await run('alerts silence depth --for 1h --reason x')).toMatchObject({ code: 0 })
})

test('O2 alerts ack says who looks after it, and the leader is owed the news', async () => {
  const { run, notes } = await firing()
  const acked = await run(['alerts', 'ack', 'oldest-ready:mail', '--by', 'ada', '--note', 'on it'])
  expect(acked).toMatchObject({ code: 0, out: 'oldest-ready:mail is acknowledged by ada\n' })
  expect((await notes.state('oldest-ready:mail'))?.state).toMatchObject({
    ack: { by: 'ada', note: 'on it' },
    owed: [{ kind: 'acknowledged', quiet: false, note: 'by ada: on it' }],
  })
  // A second one changes nothing, and what is acknowledged no longer ends with 4.
  expect((await run('alerts ack oldest-ready:mail --by bob')).out).toContain('acknowledged by ada')
  expect(await run('alerts ls')).toMatchObject({ code: 0, out: expect.stringContaining('acknowledged') as string })
  expect(await run('alerts ack depth:other')).toMatchObject({ code: 3 })
})

test('O2 alerts silence and unsilence', async () => {
  const { run, notes } = await firing()
  const made = await run(['alerts', 'silence', 'all', '-q', 'mail', '--for', '2h', '--reason', 'bulk load', '--json'])
  expect(made.json['silence']).toMatchObject({ match: null, queue: 'mail', reason: 'bulk load' })
  const { id } = made.json['silence'] as { readonly id: string }
  const listed = await run('alerts ls')
  expect(listed.code).toBe(0)
  expect(listed.out).toContain(`silenced ${id}`)
  expect(listed.out).toContain('bulk load')
  expect(await run(`alerts unsilence ${id}`)).toMatchObject({ code: 0, out: '1 silence ended\n' })
  expect(await notes.silences()).toEqual([])
  expect(await run(`alerts unsilence ${id}`)).toMatchObject({ code: 3 })
  await run(['alerts', 'silence', 'depth:mail', '--for', '2h', '--reason', 'x'])
  expect(await run('alerts unsilence depth:mail')).toMatchObject({ code: 0 })
})

test.each([
  [['silence', 'depth'], "'--for <time>' not specified"],
  [['silence', 'depth', '--for', '2h'], "'--reason <text>' not specified"],
  [['silence', 'depht', '--for', '2h', '--reason', 'x'], 'is "depht", but must be a rule'],
  [['silence', 'depth', '--for', 'long', '--reason', 'x'], '--for is "long"'],
  [['silence', 'depth', '--for', '1h', '--reason', ' '], '--reason is " "'],
  [['ls', '--since', 'x'], '--since is "x"'],
])('O2 alerts %j is wrong usage', async (words, message) => {
  const { run } = await setup()
  expect(await run(['alerts', ...words])).toMatchObject({ code: 2, err: expect.stringContaining(message) as string })
})

test('O2 alerts rules shows what is in force', async () => {
  const { run } = await setup({
    alerts: {
      remind: '4h',
      rules: { depth: { max: 5_000, queues: { bulk: { max: 99_000, severity: 'info' } } }, 'crash-loop': false },
      sinks: { pager: { type: 'pagerduty', routingKey: 'a-routing-key-of-32-characters!!' } },
      routes: { info: [] },
    },
  })
  const { out, code } = await run('alerts rules')
  expect(code).toBe(0)
  expect(out).toMatch(/^depth +warning +0ms +1m +4h +max 5000$/m)
  expect(out).toMatch(/^ {2}depth of bulk +info +0ms +1m +4h +max 99000$/m)
  expect(out).toMatch(/^crash-loop +off/m)
  expect(out).toMatch(/^redis-memory +warning +1m +1m +4h +max 80 %$/m)
  expect(out).toContain('info goes to nobody\nwarning goes to pager\n')
  expect(out).not.toContain('routing-key')
  const { json } = await run('alerts rules --json')
  expect(json['rules']).toContainEqual({
    rule: 'depth',
    only: 'bulk',
    terms: expect.objectContaining({ severity: 'info', remindMs: 4 * 60 * 60_000 }) as unknown,
  })
})

test('O2 alerts test sends a notice and its end, and shows the answer', async () => {
  const seen: SentNotice[] = []
  const broken = await httpReceiver((response) => void response.writeHead(403).end('no such hook'))
  const { run } = await setup({
    alerts: {
      sinks: {
        mine: { type: 'custom', send: (notice) => void seen.push(notice) },
        hook: { type: 'webhook', url: `${broken.url}/hooks/XXXXSECRETXXXX`, allowPrivate: true },
      },
    },
  })
  const sent = await run('alerts test mine --json')
  expect(sent.json).toMatchObject({ sink: 'mine', delivered: true, replies: { firing: 'the function returned' } })
  expect(seen.map(({ kind, key }) => `${kind} ${key}`)).toEqual(['firing test:millrace', 'recovered test:millrace'])
  const refused = await run('alerts test hook')
  expect(refused).toMatchObject({ code: 1, err: expect.stringContaining('answered 403: no such hook') as string })
  expect(refused.err).not.toContain('XXXXSECRETXXXX')
  expect(await run('alerts test fax')).toMatchObject({
    code: 3,
    err: expect.stringContaining('there is no sink "fax"; configured: mine, hook') as string,
  })
})

test('O2 a mistake in the configuration of the alerts is told', async () => {
  const { run } = await setup({ alerts: { rules: { depth: { max: -1 } } } })
  expect(await run('alerts ls')).toMatchObject({ code: 2, err: expect.stringContaining('alerts.rules.depth.max') })
})
