// The command line of the chaos runs, and that their cut for the tests leaves no scenario out.
import { mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { SCENARIOS } from '../../chaos/phases/catalogue.ts'
import { methodOf } from '../../chaos/method.ts'
import { USAGE, parseCommand, turnsOf } from '../../chaos/plan.ts'
import { differencesOf, emptyReport, goneOnWith, keyOf, playedSeconds, withCell } from '../../chaos/report.ts'
import type { ChaosReport } from '../../chaos/report.ts'
import { fileOf } from '../../chaos/results-file.ts'
import { TIMES } from '../../chaos/scenario.ts'
import { SYSTEM_NAMES, systemOf } from '../../chaos/systems/catalogue.ts'
import { unplayed } from '../../chaos/unplayed.ts'
import { runDirectory } from '../support/run-directory.ts'
import { CUT } from './cut.ts'

const systems = [await systemOf('millrace')]

function turns(...argv: readonly string[]): readonly string[] {
  const command = parseCommand(argv, systems)
  if (command.kind !== 'run') throw new Error(`it says ${command.kind}`)
  return command.turns.map(({ scenario, ...turn }) => keyOf({ ...turn, scenario: scenario.name }))
}

test('each scenario has a short pass in the tests, on a backend that it has', () => {
  const cut = Object.entries(CUT).flatMap(([backend, names]) => names.map((name) => ({ backend, name })))
  expect(cut.map(({ name }) => name).sort()).toEqual(SCENARIOS.map(({ name }) => name).sort())
  const misplaced = cut.filter(
    ({ backend, name }) => !SCENARIOS.some((one) => one.name === name && one.backends.some((own) => own === backend)),
  )
  expect(misplaced).toEqual([])
})

test('without options every scenario is played on every backend that it has', () => {
  expect(turns()).toHaveLength(SCENARIOS.reduce((sum, { backends }) => sum + backends.length, 0))
})

test('a peer plays where it tells most and on one backend, unless somebody asks for more', async () => {
  const all = await Promise.all(SYSTEM_NAMES.map(systemOf))
  const peersOf = (argv: readonly string[], name: string): readonly string[] => {
    const command = parseCommand(argv, all)
    if (command.kind !== 'run') throw new Error(`it says ${command.kind}`)
    return command.turns.flatMap(({ scenario, system, backend }) =>
      scenario.name === name && system !== 'millrace' ? [`${system}:${backend}`] : [],
    )
  }
  expect(peersOf([], 'kill-worker')).toEqual(['bullmq:redis', 'pg-boss:postgres', 'graphile-worker:postgres'])
  expect(peersOf([], 'postgres-restart')).toContain('bullmq:postgres')
  expect(peersOf([], 'loop-blocked')).toEqual(['bullmq:redis'])
  expect(peersOf([], 'high-load')).toEqual([])
  const everywhere = ['bullmq:redis', 'bullmq:postgres', 'pg-boss:postgres', 'graphile-worker:postgres']
  expect(peersOf(['--full'], 'high-load')).toEqual(everywhere)
  expect(peersOf(['--scenario', 'loop-blocked'], 'loop-blocked')).toEqual(everywhere)
  expect(peersOf(['--only', 'bullmq'], 'high-load')).toEqual(['bullmq:redis', 'bullmq:postgres'])
  expect(peersOf(['--full'], 'relay-killed')).toEqual([])
})

test('systems, backends and scenarios can be chosen', () => {
  expect(turns('--scenario', 'redis-wipe')).toEqual(['redis-wipe millrace:redis', 'redis-wipe millrace:hybrid'])
  expect(turns('--scenario', 'redis-wipe', '--backend', 'redis')).toEqual(['redis-wipe millrace:redis'])
  expect(turns('--scenario', 'redis-wipe', '--only', 'millrace:hybrid')).toEqual(['redis-wipe millrace:hybrid'])
})

test('of a scenario that is about something only some peers have, only those are asked', async () => {
  const all = await Promise.all(SYSTEM_NAMES.map(systemOf))
  const names = (scenario: string): readonly string[] =>
    turnsOf(all, { isFull: true, only: undefined, backends: ['postgres'], scenarios: [scenario] }).map(
      (one) => one.system,
    )
  expect(names('handler-past-deadline')).toEqual(['millrace', 'pg-boss'])
  expect(names('clock-skew')).toEqual(['millrace', 'bullmq', 'pg-boss', 'graphile-worker'])
})

test.each([
  [['--scenario', 'nothing'], "no scenario is called 'nothing'"],
  [['--only', 'nobody'], "no system is called 'nobody'"],
  [['--scenario', 'redis-wipe', '--backend', 'postgres'], 'nothing to play'],
  [['--full', '--short'], 'one of them'],
  [['--resume'], '--resume needs --json FILE'],
  // Only a part of it would be played, and nobody would notice.
  [['--backend', 'postgres,reddis'], "no backend is called 'reddis'; there are postgres, redis, hybrid"],
  [['--only', 'millrace,bullmq:postgress'], "no backend is called 'postgress'; there are postgres, redis, hybrid"],
  [['--seconds', 'long'], '--seconds long: a phase takes a number of seconds from 1 to 600'],
  [['--seconds', '0.5'], 'from 1 to 600'],
  [['--seconds', '601'], 'from 1 to 600'],
])('%j is refused', (argv, message) => {
  expect(parseCommand(argv, systems)).toMatchObject({ kind: 'wrong', message: expect.stringContaining(message) })
})

test('--seconds is the length of a phase, and leaves everything else as it is', () => {
  expect(parseCommand(['--seconds', '2.5'], systems)).toMatchObject({ times: { ...TIMES.usual, phaseMs: 2_500 } })
  expect(parseCommand(['--short'], systems)).toMatchObject({ times: TIMES.short })
})

test('the help names every scenario', () => {
  expect(parseCommand(['--help'], systems)).toEqual({ kind: 'help' })
  expect(SCENARIOS.filter(({ name, says }) => !USAGE.includes(name) || !USAGE.includes(says))).toEqual([])
})

test('results of an earlier run are never overwritten: each has a file of its own, and one that is there needs --resume', async () => {
  const now = '2026-01-02T03:04:05.678Z'
  const folder = mkdtempSync(join(await runDirectory(), 'results-'))
  const json = join(folder, 'chaos.json')
  expect(fileOf({ json: undefined, isResumed: false }, folder, now)).toBe(
    join(folder, 'chaos', 'results', '2026-01-02T03-04-05.json'),
  )
  expect(fileOf({ json, isResumed: false }, folder, now)).toBe(json)
  writeFileSync(json, '{}')
  expect(() => fileOf({ json, isResumed: false }, folder, now)).toThrow(
    `${json} has results already: go on with them by --resume, or name another file`,
  )
  expect(fileOf({ json, isResumed: true }, folder, now)).toBe(json)
})

describe('a run that is gone on with', () => {
  const report = emptyReport(
    {
      pace: 'usual',
      method: methodOf(TIMES.usual),
      node: 'v24',
      versions: { millrace: '1 abc' },
      settings: { millrace: 'x' },
    },
    '2026-01-02T10:00:00.000Z',
  )

  test('it is of one pace, one machine, one Node, and one version and setting of every system', () => {
    expect(differencesOf(report, report)).toEqual([])
    expect(differencesOf(report, { ...report, versions: { millrace: '1 abc', bullmq: '6' } })).toEqual([])
    expect(differencesOf(report, { ...report, pace: 'short', method: methodOf(TIMES.short), node: 'v20' })).toEqual([
      'pace was "usual" and is now "short"',
      'node was "v24" and is now "v20"',
      'phaseSeconds was 3.5 and is now 1',
      'ttlSeconds was 5 and is now 2',
    ])
    expect(differencesOf(report, { ...report, versions: { millrace: '1 def' }, settings: { millrace: 'y' } })).toEqual([
      'versions of millrace was "1 abc" and is now "1 def"',
      'settings of millrace was "x" and is now "y"',
    ])
    expect(differencesOf(report, { ...report, method: { ...report.method, text: [] } })).toEqual([
      'its scenarios or its method were described in other words',
    ])
  })

  test('what broke the harness is played again, what was played is not', () => {
    const named = { system: 'millrace', backend: 'redis' } as const
    const broken = unplayed({ ...named, scenario: 'a' }, new Error('no server'))
    const played = { ...broken, scenario: 'b', note: '2 lost' }
    const old = { ...report, cells: [broken, played] }
    expect(goneOnWith(old, { ...report, versions: { bullmq: '6' } })).toEqual({
      ...report,
      pausesSeconds: [0],
      versions: { millrace: '1 abc', bullmq: '6' },
      cells: [played],
    })
  })

  test('it says how long was played, without the time in which nobody did', () => {
    const cell = unplayed({ scenario: 'a', system: 'millrace', backend: 'redis' }, 'x')
    const cut = withCell(report, cell, '2026-01-02T10:20:00.000Z')
    expect(playedSeconds(cut)).toBe(20 * 60)
    const resumed = goneOnWith(cut, { ...report, startedAt: '2026-01-02T13:20:00.000Z' })
    const ended = withCell(resumed, cell, '2026-01-02T13:41:00.000Z')
    expect(ended).toMatchObject({
      startedAt: report.startedAt,
      endedAt: '2026-01-02T13:41:00.000Z',
      pausesSeconds: [10_800],
    })
    expect(playedSeconds(ended)).toBe(41 * 60)
  })
})

test('a cell that is played again takes the place of the old one', () => {
  const cell = { scenario: 'a', system: 'millrace', backend: 'redis', ok: false }
  const report = { cells: [cell, { ...cell, scenario: 'b' }] } as unknown as ChaosReport // as much as it looks at
  const { cells } = withCell(report, { ...report.cells[0]!, ok: true }, '')
  expect(cells.map(({ scenario, ok }) => [scenario, ok])).toEqual([
    ['b', false],
    ['a', true],
  ])
})
