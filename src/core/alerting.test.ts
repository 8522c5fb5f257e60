import { describe, expect, test } from 'vitest'
import type { AlertFacts, QueueFacts, ServerFacts, StoreFacts } from './alert-facts.ts'
import { settleRules } from './alert-options.ts'
import type { CustomRule, RulesOptions } from './alert-options.ts'
import { ALERT_QUEUE, ALERT_RULES, RULE_NAMES } from './alert-rules.ts'
import type { RuleName } from './alert-rules.ts'
import type { Silence } from './alert-silence.ts'
import { acknowledge, alertKey, evaluate } from './alerting.ts'
import type { AlertState, Notice, Rule } from './alerting.ts'

const QUEUE: QueueFacts = {
  queue: 'mail',
  paused: false,
  ready: 0,
  lanes: null,
  running: 0,
  oldestReadyMs: null,
  workers: 1,
  deadLetters: 0,
  isStalled: false,
  recent: { completed: 0, failed: 0 },
}
const SERVER: ServerFacts = { server: 'redis', isUp: true, error: null, memoryUsedBytes: 1, memoryMaxBytes: 100 }
const STORE: StoreFacts = { connection: 'default', queues: [], kinds: [], schedules: [], relay: [], servers: [] }

const store = (part: Partial<StoreFacts>): Partial<AlertFacts> => ({ stores: [{ ...STORE, ...part }] })
const queue = (part: Partial<QueueFacts>): Partial<AlertFacts> => store({ queues: [{ ...QUEUE, ...part }] })
const server = (part: Partial<ServerFacts>): Partial<AlertFacts> => store({ servers: [{ ...SERVER, ...part }] })

interface World {
  readonly at: (seconds: number, facts: Partial<AlertFacts>) => readonly Notice[]
  /** What was told, without what is only recorded. */
  readonly told: () => readonly string[]
  readonly states: Map<string, AlertState>
  readonly silences: Silence[]
}

const START_MS = 1_000_000_000_000

/** Looks, as a leader takes them: what is owed is handed over at once. */
function world(options: RulesOptions = {}, custom: readonly CustomRule[] = [], remindMs: number | null = null): World {
  const rules: readonly Rule[] = settleRules(options, custom, { remindMs })
  const states = new Map<string, AlertState>()
  const silences: Silence[] = []
  const all: Notice[] = []
  return {
    states,
    silences,
    told: () => all.filter(({ quiet }) => !quiet).map(({ kind, key }) => `${kind} ${key}`),
    at(seconds, part) {
      const nowMs = START_MS + seconds * 1_000
      const facts: AlertFacts = { nowMs, stores: [STORE], pools: [], ...part }
      const { changes } = evaluate({ rules, facts, states, silences, nowMs, stepMaxMs: 45_000 })
      const notices = changes.flatMap(({ key, after }) => {
        if (after === null || after.phase === 'recovered') states.delete(key)
        else states.set(key, { ...after, owed: [] })
        return after?.owed ?? []
      })
      all.push(...notices)
      return notices
    },
  }
}

const NAMED: RulesOptions = { 'kind-failed': { kinds: { charge: {} } } }
const HOUR_MS = 60 * 60_000

/** For each rule: what makes it fire, what is still no reason, and what ends it. */
const CASES: readonly (readonly [RuleName, string, Partial<AlertFacts>, Partial<AlertFacts>, Partial<AlertFacts>])[] = [
  ['depth', 'depth:mail', queue({ ready: 10_001 }), queue({ ready: 10_000 }), queue({ ready: 8_000 })],
  [
    'oldest-ready',
    'oldest-ready:mail',
    queue({ ready: 1, oldestReadyMs: HOUR_MS + 1 }),
    queue({ ready: 1, oldestReadyMs: HOUR_MS }),
    queue({}),
  ],
  [
    'nothing-processing',
    'nothing-processing:mail',
    queue({ ready: 3, isStalled: true }),
    queue({ ready: 3, isStalled: null }),
    queue({ ready: 3, running: 1 }),
  ],
  ['dead-letters', 'dead-letters:mail', queue({ deadLetters: 101 }), queue({ deadLetters: 100 }), queue({})],
  [
    'dead-letters',
    'dead-letters:mail',
    queue({ deadLetters: 51, recent: { completed: 900, failed: 51 } }),
    queue({ deadLetters: 50, recent: { completed: 900, failed: 50 } }),
    queue({ deadLetters: 51 }),
  ],
  [
    'failure-ratio',
    'failure-ratio:mail',
    queue({ recent: { completed: 9, failed: 11 } }),
    queue({ recent: { completed: 11, failed: 9 } }),
    queue({ recent: { completed: 0, failed: 19 } }),
  ],
  [
    'kind-failed',
    'kind-failed:charge',
    store({ kinds: [{ kind: 'charge', failed: 1, error: 'card refused' }] }),
    store({ kinds: [{ kind: 'charge', failed: 0, error: null }] }),
    store({ kinds: [{ kind: 'charge', failed: 0, error: null }] }),
  ],
  ['redis-memory', 'redis-memory:redis', server({ memoryUsedBytes: 81 }), server({ memoryUsedBytes: 80 }), server({})],
  [
    'relay-lag',
    'relay-lag:mail',
    store({ relay: [{ queue: 'mail', lagMs: 30_001 }] }),
    store({ relay: [{ queue: 'mail', lagMs: 30_000 }] }),
    store({ relay: [{ queue: 'mail', lagMs: 0 }] }),
  ],
  [
    'missed-schedule',
    'missed-schedule:nightly',
    store({ schedules: [{ schedule: 'nightly', lateMs: 300_001 }] }),
    store({ schedules: [{ schedule: 'nightly', lateMs: 300_000 }] }),
    store({ schedules: [{ schedule: 'nightly', lateMs: 0 }] }),
  ],
  [
    'crash-loop',
    'crash-loop:web1/mail',
    { pools: [{ pool: 'mail', host: 'web1', isCrashLooping: true }] },
    { pools: [{ pool: 'mail', host: 'web1', isCrashLooping: false }] },
    { pools: [] },
  ],
  ...(['postgres', 'redis', 'store'] as const).map(
    (name) =>
      [
        `${name}-down`,
        `${name}-down:${name}`,
        server({ server: name, isUp: false, error: 'refused' }),
        server({ server: name }),
        server({ server: name }),
      ] as const,
  ),
]

test('O2 every rule has a case here', () => {
  expect(new Set(CASES.map(([name]) => name))).toEqual(new Set(RULE_NAMES))
})

test.each(CASES)('O2 rule %s fires as %s above its limit and not at it, and recovers', (name, key, over, at, under) => {
  const { forMs, recoverMs, severity } = ALERT_RULES[name]
  const w = world(NAMED)
  for (let seconds = 0; seconds < 300; seconds += 15) w.at(seconds, at)
  expect(w.told()).toEqual([])
  const from = 300
  const fires = [0, 15, 30, 45, 60, 75].map((after) => w.at(from + after, over)).flat()
  expect(w.told()).toEqual([`firing ${key}`])
  expect(fires).toMatchObject([{ kind: 'firing', severity, no: 1, quiet: false }])
  const lasted = (fires[0]?.atMs ?? 0) - START_MS - from * 1_000
  expect(lasted).toBe(Math.ceil(forMs / 15_000) * 15_000)
  // Better for a moment is not better.
  if (recoverMs > 0) {
    w.at(400, under)
    w.at(405, over)
  }
  expect(w.told()).toEqual([`firing ${key}`])
  for (let seconds = 410; seconds <= 410 + recoverMs / 1_000 + 30; seconds += 15) w.at(seconds, under)
  expect(w.told()).toEqual([`firing ${key}`, `recovered ${key}`])
  expect(w.states.size).toBe(0)
})

describe('O2 an alert', () => {
  const over = queue({ ready: 10_001 })
  const edge = queue({ ready: 9_000 })
  const fine = queue({ ready: 0 })

  test('neither comes nor goes between its limit and four fifths of it', () => {
    const w = world()
    w.at(0, edge)
    expect(w.told()).toEqual([])
    w.at(15, over)
    for (let seconds = 30; seconds < 600; seconds += 15) w.at(seconds, edge)
    expect(w.told()).toEqual(['firing depth:mail'])
    for (let seconds = 600; seconds < 700; seconds += 15) w.at(seconds, fine)
    expect(w.told()).toEqual(['firing depth:mail', 'recovered depth:mail'])
  })

  test('is told again only if somebody asked for it, until it is acknowledged', () => {
    const once = world()
    for (let hour = 0; hour < 5; hour++) once.at(hour * 3_600, over)
    expect(once.told()).toEqual(['firing depth:mail'])
    const w = world({}, [], HOUR_MS)
    for (let hour = 0; hour < 3; hour++) w.at(hour * 3_600, over)
    expect(w.told()).toEqual(['firing depth:mail', 'reminder depth:mail', 'reminder depth:mail'])
    const acked = acknowledge(w.states.get('depth:mail')!, { by: 'ada', atMs: START_MS, note: 'on it' })
    expect(acked.owed).toMatchObject([{ kind: 'acknowledged', quiet: false, no: 4, note: 'by ada: on it' }])
    w.states.set('depth:mail', { ...acked, owed: [] })
    for (let hour = 3; hour < 6; hour++) w.at(hour * 3_600, over)
    expect(w.told()).toHaveLength(3)
    for (let seconds = 0; seconds < 120; seconds += 15) w.at(6 * 3_600 + seconds, fine)
    expect(w.told().at(-1)).toBe('recovered depth:mail')
  })

  const silence = (part: Partial<Silence> = {}): Silence => ({
    id: 's1',
    match: 'depth',
    queue: null,
    untilMs: START_MS + 600_000,
    reason: 'bulk load',
    by: 'ada',
    createdAtMs: START_MS,
    ...part,
  })

  test('that fires during a silence is recorded, and told when it still fires at its end', () => {
    const w = world()
    w.silences.push(silence())
    expect(w.at(0, over)).toMatchObject([{ kind: 'firing', quiet: true, note: 'silenced: bulk load' }])
    expect(w.states.get('depth:mail')).toMatchObject({ phase: 'firing', silence: 's1', told: 0 })
    for (let seconds = 15; seconds < 600; seconds += 15) w.at(seconds, over)
    expect(w.told()).toEqual([])
    expect(w.at(600, over)).toMatchObject([{ kind: 'firing', quiet: false, no: 1 }])
  })

  test('that comes and goes during a silence is not told at all', () => {
    const w = world()
    w.silences.push(silence({ match: 'depth:mail' }))
    w.at(0, over)
    const ended = [15, 30, 45, 60, 75, 90].flatMap((seconds) => w.at(seconds, fine))
    expect(ended).toMatchObject([{ kind: 'recovered', quiet: true }])
    expect(w.told()).toEqual([])
  })

  test('that was told before a silence is told to be over during it', () => {
    const w = world()
    w.at(0, over)
    w.silences.push(silence({ match: null, queue: 'mail' }))
    for (let seconds = 15; seconds < 120; seconds += 15) w.at(seconds, fine)
    expect(w.told()).toEqual(['firing depth:mail', 'recovered depth:mail'])
  })

  test('of another queue or rule is not silenced', () => {
    const w = world()
    w.silences.push(silence({ queue: 'other' }), silence({ match: 'oldest-ready' }), silence({ untilMs: START_MS }))
    w.at(0, over)
    expect(w.told()).toEqual(['firing depth:mail'])
  })

  test('neither begins nor ends while its facts are missing', () => {
    const w = world()
    const missing = store({ queues: null })
    for (let seconds = 0; seconds < 300; seconds += 15) w.at(seconds, missing)
    w.at(300, over)
    for (let seconds = 315; seconds < 900; seconds += 15) w.at(seconds, missing)
    expect(w.told()).toEqual(['firing depth:mail'])
    expect(w.states.size).toBe(1)
  })

  test('does not mind a clock that jumps', () => {
    const w = world()
    const stalled = queue({ ready: 3, isStalled: true })
    w.at(0, stalled)
    // A day ahead counts for one step.
    w.at(86_400, stalled)
    expect(w.told()).toEqual([])
    w.at(-86_400, stalled)
    expect(w.told()).toEqual([])
    w.at(-86_385, stalled)
    expect(w.told()).toEqual(['firing nothing-processing:mail'])
    w.at(86_400, fine)
    expect(w.told()).toEqual(['firing nothing-processing:mail'])
    w.at(86_430, fine)
    expect(w.told()).toEqual(['firing nothing-processing:mail', 'recovered nothing-processing:mail'])
  })

  test('about something that is gone is over', () => {
    const w = world()
    w.at(0, over)
    for (let seconds = 15; seconds < 120; seconds += 15) w.at(seconds, store({ queues: [] }))
    expect(w.told()).toEqual(['firing depth:mail', 'recovered depth:mail'])
  })
})

describe('O2 rules', () => {
  test('about waiting say nothing of a paused queue', () => {
    const w = world()
    const paused = { paused: true, ready: 20_000, oldestReadyMs: 9 * HOUR_MS, isStalled: true }
    for (let seconds = 0; seconds < 300; seconds += 15) w.at(seconds, queue(paused))
    expect(w.told()).toEqual([])
  })

  test('never look at the queue of the notices', () => {
    const w = world()
    for (let seconds = 0; seconds < 300; seconds += 15) {
      const bad = { ready: 20_000, oldestReadyMs: 9 * HOUR_MS, isStalled: true, deadLetters: 500 }
      w.at(seconds, queue({ ...bad, queue: ALERT_QUEUE, recent: { completed: 0, failed: 500 } }))
    }
    expect(w.told()).toEqual([])
  })

  test('have other terms for single queues, and can be switched off', () => {
    const w = world({
      depth: { max: 5, queues: { mail: { max: 100, severity: 'info' }, bulk: false } },
      'oldest-ready': false,
    })
    const queues = ['mail', 'bulk', 'other'].map((name) => ({
      ...QUEUE,
      queue: name,
      ready: 50,
      oldestReadyMs: 9 * HOUR_MS,
    }))
    w.at(0, store({ queues }))
    expect(w.told()).toEqual(['firing depth:other'])
    expect(w.at(15, queue({ ready: 101 }))).toMatchObject([{ key: 'depth:mail', severity: 'info' }])
  })

  test('can be given for single lanes', () => {
    const w = world({ depth: { high: 10 } })
    w.at(0, queue({ ready: 50, lanes: [11, 39, 0] }))
    expect(w.told()).toEqual(['firing depth:mail/high'])
    // A store that cannot say neither fires nor recovers it.
    for (let seconds = 15; seconds < 300; seconds += 15) w.at(seconds, queue({ ready: 50, lanes: null }))
    expect(w.told()).toEqual(['firing depth:mail/high'])
  })

  test('of the user are functions, and one that throws changes nothing', () => {
    let answer: 'bad' | 'good' | 'throws' = 'bad'
    const check = () => {
      if (answer === 'throws') throw new Error('oops')
      return [{ firing: answer === 'bad', text: 'the disk is full', about: 'db1' }]
    }
    const w = world({}, [{ name: 'disk', severity: 'critical', check }])
    w.at(0, {})
    expect(w.told()).toEqual(['firing disk:db1'])
    answer = 'throws'
    w.at(15, {})
    expect(w.states.size).toBe(1)
    answer = 'good'
    w.at(30, {})
    expect(w.told()).toEqual(['firing disk:db1', 'recovered disk:db1'])
  })

  test('keep a bounded number of alerts', () => {
    const w = world()
    const queues = Array.from({ length: 1_100 }, (_, no) => ({ ...QUEUE, queue: `q${no}`, ready: 20_000 }))
    w.at(0, store({ queues }))
    expect(w.states.size).toBe(1_000)
  })

  test.each([
    [{ depht: {} }, 'alerts.rules has no option "depht": known: depth,'],
    [{ depth: { maximum: 3 } }, 'alerts.rules.depth has no option "maximum"'],
    [{ depth: { severity: 'fatal' } }, 'alerts.rules.depth.severity is "fatal", but must be one of info'],
    [{ depth: { max: -1 } }, 'alerts.rules.depth.max is -1'],
    [{ 'kind-failed': { max: 100 } }, 'a whole number from 0 to 99'],
    [{ 'redis-memory': { max: 80 } }, 'a share such as 0.8'],
    [{ 'oldest-ready': { max: 'soon' } }, 'alerts.rules.oldest-ready.max is "soon"'],
    [{ depth: { remind: 5 } }, 'alerts.rules.depth.remind'],
    [{ depth: { queues: { mail: { max: 'x' } } } }, 'alerts.rules.depth.queues.mail.max'],
    [{ 'crash-loop': { queues: {} } }, 'has no option "queues"'],
  ])('that are wrong are told: %j', (options, message) => {
    // Mistakes that the types would not let through.
    expect(() => settleRules(options as never, [], { remindMs: null })).toThrow(message)
  })

  test('of the user may not take the name of another', () => {
    const check = () => []
    expect(() => settleRules({}, [{ name: 'depth', check }], { remindMs: null })).toThrow('no built-in rule')
    const twice = [
      { name: 'a', check },
      { name: 'a', check },
    ]
    expect(() => settleRules({}, twice, { remindMs: null })).toThrow('names that differ')
  })
})

test('O2 the key of an alert names it, on any connection, and never becomes too long', () => {
  expect(alertKey('depth', { connection: 'default', name: 'mail' })).toBe('depth:mail')
  expect(alertKey('depth', { connection: 'eu', name: 'mail' })).toBe('depth:eu/mail')
  const long = (name: string): string => alertKey('nothing-processing', { connection: 'c'.repeat(100), name })
  expect(long('a'.repeat(100))).toHaveLength(200)
  expect(long(`${'a'.repeat(99)}b`)).not.toBe(long('a'.repeat(100)))
})
