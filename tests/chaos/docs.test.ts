// The page of results says what its data says, of ours and of peers, the bad as well as the good.
import { mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Cell } from '../../chaos/cell.ts'
import { DATA, PAGE, renderReliability } from '../../chaos/render-docs.ts'
import { methodOf } from '../../chaos/method.ts'
import { parseCommand } from '../../chaos/plan.ts'
import { keyOf, playedSeconds, readReport } from '../../chaos/report.ts'
import type { ChaosReport } from '../../chaos/report.ts'
import { SCENARIOS } from '../../chaos/phases/catalogue.ts'
import { TIMES } from '../../chaos/scenario.ts'
import { SYSTEM_NAMES, systemOf } from '../../chaos/systems/catalogue.ts'
import { renderSummary, withSummary } from '../../chaos/summary.ts'
import { isPlayed } from '../../chaos/unplayed.ts'
import { runDirectory } from '../support/run-directory.ts'
import { ROOT, exists, readText } from '../tidy/source.ts'

const cell = {
  scenario: 'kill-worker',
  system: 'millrace',
  backend: 'redis',
  enqueued: 100,
  refused: 1,
  completed: 100,
  lost: 0,
  givenUp: 0,
  stuck: 0,
  unexpected: 0,
  stale: 0,
  duplicated: 7,
  duplicatesAllowed: 5,
  overlaps: 0,
  disorder: 0,
  miscounted: 0,
  wrongTicks: 0,
  recoverySeconds: 10.44,
  throughputRatio: 0.97,
  steadySeconds: null,
  quits: 0,
  ttlSeconds: null,
  offeredPerSecond: 300,
  promised: { recoveryMaxS: 15, ratioMin: 0.95, steady: null },
  ok: true,
  note: '',
  seconds: 20,
} as const
const peer = { ...cell, system: 'other', stale: null, promised: null, recoverySeconds: 3 } as const
const report: ChaosReport = {
  date: '2026-01-02',
  pace: 'usual',
  method: methodOf(TIMES.usual),
  machine: { cpu: 'a cpu', cores: 2, memoryGiB: 4, os: 'linux' },
  node: 'v20',
  versions: { redis: '7' },
  settings: { millrace: 'defaults', other: 'as its page says' },
  cells: [cell, peer],
}

test('every cell is a line with its numbers', () => {
  const page = renderReliability(report)
  expect(page).toContain(
    '| millrace on redis | 100 | 1 | 0 | 0 | 0 | 0 | 5 | 2 | 10.4 s | 97 % | – | ≤ 15 s, ≥ 95 % | yes |',
  )
  expect(page).toContain('| other on redis | 100 | 1 | 0 | 0 | 0 | – | 5 | 2 | 3.0 s | 97 % | – | – | nothing amiss |')
  expect(page).toContain('- **other**: as its page says')
})

test('what only its scenario measures is said with the verdict', () => {
  const page = renderReliability({ ...report, cells: [{ ...cell, figures: { early: 0, latestSeconds: 0.51 } }] })
  expect(page).toContain('| 97 % | – | ≤ 15 s, ≥ 95 % | yes: 0 early, the latest 0.5 s after its time |')
})

test('where nothing stops there is no recovery, and where it was looked for in vain that is said', () => {
  const page = (scenario: string, measured: Partial<Cell>): string =>
    renderReliability({ ...report, cells: [{ ...cell, scenario, ...measured }] })
  expect(page('baseline', { recoverySeconds: null })).toContain('| – | 97 % | – | ≤ 15 s')
  expect(page('kill-worker', { recoverySeconds: null })).toContain('| not seen | 97 % | – | ≤ 15 s')
  const steady = { share: 0.95, perSecond: 1_000, withinS: 5 }
  const promised = { recoveryMaxS: 5, ratioMin: null, steady }
  expect(page('postgres-restart', { promised, steadySeconds: 0.25 })).toContain(
    '| 97 % | 0.3 s | ≤ 5 s, 95 % of 1000/s within 5 s | yes |',
  )
  expect(page('postgres-restart', { promised })).toContain('| 97 % | not seen | ≤ 5 s, 95 %')
})

test('what was played is described as it was, not as it would be today', () => {
  const method = {
    ...report.method,
    phaseSeconds: 77,
    ttlSeconds: 88,
    text: ['by hand'],
    scaled: ['one fault, not two'],
    scenarios: report.method.scenarios.map((one) => ({ ...one, says: `once: ${one.name}` })),
    peerNotes: { other: { text: 'As it was then.', sources: ['https://example.org'] } },
  }
  const page = renderReliability({ ...report, method })
  expect(page).toContain('Phases of 77 s, ttl 88 s')
  expect(page).toContain('## How it is played\n\nby hand\n')
  expect(page).toContain('smaller here than it may be in production\n\n- one fault, not two.\n')
  expect(page).toContain('### kill-worker\n\nOnce: kill-worker.')
  expect(page).toContain('as its page says. As it was then. (<https://example.org>)')
})

test('when it was played is said, and whether in one go', () => {
  const [startedAt, endedAt] = ['2026-01-02T10:00:00.000Z', '2026-01-02T13:41:00.000Z']
  const page = (pausesSeconds: readonly number[]): string =>
    renderReliability({ ...report, startedAt, endedAt, pausesSeconds })
  expect(page([])).toContain('Played on 2026-01-02, from 2026-01-02 10:00 to 2026-01-02 13:41 UTC (221 minutes), 2 ×')
  expect(page([10_800])).toContain(
    '(41 minutes of playing; cut short and gone on with once, 180 minutes lay between), 2 ×',
  )
  expect(renderReliability(report)).toContain('Played on 2026-01-02, 2 ×')
})

test('what is smaller than in production is said of scenarios that there are, with the times of the run', () => {
  const names = SCENARIOS.map(({ name }) => name)
  const said = methodOf(TIMES.full).scaled.flatMap(
    (line) => line.match(/^[a-z-]+(?= | and )|(?<= and )[a-z]+-[a-z-]+/g) ?? [],
  )
  expect(said.filter((name) => name.includes('-') && !names.includes(name))).toEqual([])
  expect(methodOf(TIMES.full).scaled.join()).toContain('idle-in-tx holds its transaction for 120 s')
})

test('results that do not say what was promised and how they were played are refused', async () => {
  const folder = mkdtempSync(join(await runDirectory(), 'results-'))
  const file = join(folder, 'old.json')
  const { method: _, ...old } = report
  writeFileSync(file, JSON.stringify(old))
  expect(() => readReport(file)).toThrow('does not say what was promised and how it was played. Play it again')
  expect(readReport(join(folder, 'none.json'))).toBeUndefined()
})

test('where a peer came back sooner, and where a promise did not hold, is said', () => {
  const page = renderReliability({ ...report, cells: [{ ...cell, ok: false, note: '2 lost' }, peer] })
  expect(page).toContain('- kill-worker on redis: 2 lost.')
  expect(page).toContain('- kill-worker on redis: other came back after 3.0 s, Millrace after 10.4 s.')
  expect(page).toContain('Of the 1 cells of Millrace 0 were')
  expect(renderReliability({ ...report, cells: [cell, { ...peer, recoverySeconds: 10 }] })).toContain(
    'In no cell of this run',
  )
})

test('where no peer has been played none is said to be slower', () => {
  const page = renderReliability({ ...report, cells: [cell] })
  expect(page).toContain('No peer has been played')
  expect(page).not.toContain('In no cell of this run')
})

test('the block of the README counts what is lost apart from what a contract gives up', () => {
  const given = { ...cell, scenario: 'redis-wipe', givenUp: 4, note: 'contract: it forgets' }
  const block = renderSummary({ ...report, cells: [cell, given, peer] })
  expect(block).toContain('| millrace on redis | 2 | 200 | 0 | 4 | 0 | 0 | 4 | 2 of 2 |')
  // A cell may have both: what a contract gives up excuses nothing else.
  const both = { ...given, lost: 3, ok: false, note: '3 lost although the store had them; contract: it forgets' }
  const cells = [cell, both, peer]
  expect(renderSummary({ ...report, cells })).toContain('| millrace on redis | 2 | 200 | 3 | 4 | 0 | 0 | 4 | 1 of 2 |')
  expect(renderReliability({ ...report, cells })).toContain('| millrace on redis | 100 | 1 | 3 | 4 | 0 | 0 | 5 |')
  expect(block).toContain('| other on redis | 1 | 100 | 0 | 0 | 0 | – | 2 | 1 of 1 |')
})

describe('the committed results', () => {
  const data = readReport(join(ROOT, DATA))!

  test('they are of a usual run: every cell of it was played, ours and those of peers', async () => {
    const command = parseCommand([], await Promise.all(SYSTEM_NAMES.map(systemOf)))
    if (command.kind !== 'run') throw new Error(`it says ${command.kind}`)
    const played = new Set(data.cells.filter(isPlayed).map(keyOf))
    const asked = command.turns.map(({ scenario, ...turn }) => keyOf({ ...turn, scenario: scenario.name }))
    expect(data.pace).toBe('usual')
    expect(asked.filter((key) => !played.has(key))).toEqual([])
  })

  test('a usual run ends within 45 minutes', () => {
    const played = playedSeconds(data) ?? data.cells.reduce((sum, { seconds }) => sum + seconds, 0)
    expect(played).toBeLessThan(45 * 60)
  })

  test('the page and the block of the README are what `npm run chaos:docs` makes of them', () => {
    expect(exists(PAGE) ? readText(PAGE) : `${PAGE} is missing`).toBe(renderReliability(data))
    expect(readText('README.md')).toBe(withSummary(readText('README.md'), data))
  })
})
