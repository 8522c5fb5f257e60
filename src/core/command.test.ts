// Which commands are obeyed.
import { describe, expect, test } from 'vitest'
import { judgeCommand, parseCommand, signCommand } from './command.ts'
import type { Command, SignedCommand } from './command.ts'

const SECRET = 'correct horse battery staple'
const NOW_MS = 1_000_000
const command: Command = {
  id: 'one',
  supervisor: 'web1',
  kind: 'scale',
  args: { pool: 'mail', processes: 3 },
  by: 'ada@ops',
  issuedAtMs: NOW_MS - 1_000,
  expiresAtMs: NOW_MS + 60_000,
}
const signed = signCommand(command, SECRET)
const judge = { supervisor: 'web1', secret: SECRET, nowMs: NOW_MS, wasSeen: () => false }

describe('command', () => {
  test('P1 a signed command survives its way and is obeyed', () => {
    expect(parseCommand(JSON.stringify(signed))).toEqual(signed)
    expect(judgeCommand(parseCommand(JSON.stringify(signed))!, judge)).toEqual({ ok: true })
    expect(JSON.stringify(signed)).not.toContain(SECRET)
  })

  const resigned = (changes: Partial<Command>): SignedCommand => signCommand({ ...command, ...changes }, SECRET)
  test.each<[string, SignedCommand, Partial<typeof judge>]>([
    ['it is not signed', command, {}],
    ['its signature is wrong', signCommand(command, 'another secret'), {}],
    ['its signature is wrong', { ...signed, signature: '' }, {}],
    ['its signature is wrong', { ...signed, kind: 'stop' }, {}],
    ['its signature is wrong', { ...signed, args: { pool: 'mail', processes: 30 } }, {}],
    ['its signature is wrong', { ...signed, by: 'eve' }, {}],
    ['its signature is wrong', { ...signed, id: 'two' }, {}],
    ['its signature is wrong', { ...signed, supervisor: 'web2' }, { supervisor: 'web2' }],
    ['its signature is wrong', { ...signed, expiresAtMs: NOW_MS + 90_000 }, {}],
    ['it is for another supervisor', signed, { supervisor: 'web2' }],
    ['it has expired', signed, { nowMs: NOW_MS + 60_000 }],
    ['it comes from the future', signed, { nowMs: NOW_MS - 70_000 }],
    ['it would be valid for too long', resigned({ expiresAtMs: NOW_MS + 3_600_001 }), {}],
    ['it was said before', signed, { wasSeen: (): boolean => true } as Partial<typeof judge>],
  ])('P1 refused because %s', (why, one, changes) => {
    expect(judgeCommand(one, { ...judge, ...changes })).toEqual({ ok: false, why })
  })

  test('P1 without a secret whoever may write the store may command, but not to others and not twice', () => {
    const { secret: _, ...open } = judge
    expect(judgeCommand(command, open)).toEqual({ ok: true })
    expect(judgeCommand(command, { ...open, supervisor: 'web2' })).toMatchObject({ ok: false })
    expect(judgeCommand(command, { ...open, wasSeen: () => true })).toMatchObject({ ok: false })
  })

  test.each([
    'gibberish',
    'null',
    '[]',
    '{}',
    JSON.stringify({ ...signed, kind: 'explode' }),
    JSON.stringify({ ...signed, args: null }),
    JSON.stringify({ ...signed, args: { processes: -1 } }),
    JSON.stringify({ ...signed, args: { pool: 7 } }),
    JSON.stringify({ ...signed, args: { deadlineMs: 0.5 } }),
    JSON.stringify({ ...signed, issuedAtMs: 'now' }),
    JSON.stringify({ ...signed, signature: 7 }),
    JSON.stringify({ ...signed, by: 'x'.repeat(201) }),
  ])('P1 %s is no command', (text) => {
    expect(parseCommand(text)).toBeNull()
  })
})
