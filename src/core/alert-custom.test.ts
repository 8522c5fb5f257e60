// Rules of the user: what they cannot see does not end, and whatever they say can be kept and sent. And what must not change
// while an alert fires.
import { expect, test } from 'vitest'
import type { AlertFacts, StoreFacts } from './alert-facts.ts'
import { settleRules } from './alert-options.ts'
import type { CustomRule } from './alert-options.ts'
import { evaluate } from './alerting.ts'
import type { AlertState, Notice } from './alerting.ts'
import { checkKey } from './names.ts'

const STORE: StoreFacts = { connection: 'default', queues: [], kinds: [], schedules: [], relay: [], servers: [] }

/** One look after the other; answers what each of them tells. */
function looks(...custom: readonly CustomRule[]): (facts: Partial<AlertFacts>) => readonly Notice[] {
  const rules = settleRules({}, custom, { remindMs: null })
  const states = new Map<string, AlertState>()
  let nowMs = 1_000_000_000_000
  return (part) => {
    nowMs += 15_000
    const facts: AlertFacts = { nowMs, stores: [STORE], pools: [], ...part }
    const { changes } = evaluate({ rules, facts, states, silences: [], nowMs, stepMaxMs: 45_000 })
    return changes.flatMap(({ key, after }) => {
      if (after === null || after.phase === 'recovered') states.delete(key)
      else states.set(key, { ...after, owed: [] })
      return after?.owed ?? []
    })
  }
}

const words = (notices: readonly Notice[]): readonly string[] => notices.map(({ kind, key }) => `${kind} ${key}`)
const store = (part: Partial<StoreFacts>): Partial<AlertFacts> => ({ stores: [{ ...STORE, ...part }] })

test('O2 a rule of the user does not end what it could not see', () => {
  const schedule = { schedule: 'nightly', lateMs: 9 }
  const check = ({ stores }: AlertFacts) =>
    (stores[0]?.schedules ?? []).map(({ schedule: about, lateMs }) => ({ about, firing: lateMs > 5, text: 'late' }))
  const look = looks({ name: 'late', check })
  expect(words(look(store({ schedules: [schedule] })))).toEqual(['firing late:nightly'])
  for (const missing of [store({ schedules: null }), store({ relay: null }), { pools: null }]) {
    expect(words(look(missing))).toEqual([])
  }
  expect(words(look(store({})))).toEqual(['recovered late:nightly'])
})

test('O2 what a rule of the user says can be kept and sent, whatever it is', () => {
  const text = `${'x'.repeat(499)}😀`
  const look = looks({ name: 'odd', check: () => [{ about: 'a\0b\n😀', firing: true, text }] })
  const [told] = look({})
  expect(told?.text).toBe(`${'x'.repeat(499)}\uFFFD`)
  expect(checkKey(told?.key, 'key')).toBe('odd:a\uFFFDb 😀')
})

test('O2 a pool that is well does not hide the crash loop of another one of its name and host', () => {
  const well = { pool: 'all', host: 'web1', isCrashLooping: false }
  expect(words(looks()({ pools: [well, { ...well, isCrashLooping: true }, well] }))).toEqual([
    'firing crash-loop:web1/all',
  ])
})

test('O2 an alert keeps its severity to its end: those who were told of it are told that it is over', () => {
  const states = new Map<string, AlertState>()
  const look = (severity: 'critical' | 'info', nowMs: number, firing: boolean) => {
    const check = () => [{ firing, text: 'x' }]
    const rules = settleRules({}, [{ name: 'mine', severity, check }], { remindMs: null })
    const facts: AlertFacts = { nowMs, stores: [STORE], pools: [] }
    const { changes } = evaluate({ rules, facts, states, silences: [], nowMs, stepMaxMs: 45_000 })
    for (const { key, after } of changes) if (after !== null) states.set(key, { ...after, owed: [] })
    return changes.flatMap(({ after }) => after?.owed ?? []).map(({ kind, severity: told }) => `${told} ${kind}`)
  }
  expect(look('critical', 1_000, true)).toEqual(['critical firing'])
  expect(look('info', 120_000, true)).toEqual([])
  expect(look('info', 240_000, false)).toEqual(['critical recovered'])
})
