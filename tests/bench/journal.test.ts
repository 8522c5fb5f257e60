// The journal of a benchmark: what is left to do, what a broken run costs, and when a file can be gone on with.
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { differencesOf, newJournal, turnsLeft, withTurn, withoutFailures } from '../../bench/journal.ts'
import type { Journal, TurnRecord } from '../../bench/journal.ts'
import { readJournal, usualFile, writeJournal } from '../../bench/journal-file.ts'
import type { About } from '../../bench/report.ts'

const about: About = {
  machine: { cpu: 'slow', cores: 2, memoryGiB: 4, os: 'any' },
  node: 'v24',
  versions: { millrace: '1' },
  durability: {},
  settings: {},
  notes: [],
  method: [],
}
const cell = { system: 'pg-boss', backend: 'postgres', scenario: 'drain-1', jobs: 10, runs: 2 }
const other = { ...cell, system: 'graphile-worker' }

function setup(): Journal {
  return newJournal({ cells: [cell, other] }, about, '2030-01-01T00:00:00Z')
}

function turn(system: string, run: number, outcome: number | 'failed'): TurnRecord {
  const { scenario, backend } = cell
  const said = outcome === 'failed' ? { error: 'why' } : { measurement: { values: { jobs_per_s: outcome } } }
  return { scenario, system, backend, run, seconds: 1, ...said }
}

function play(journal: Journal, ...turns: readonly TurnRecord[]): Journal {
  return turns.reduce((sofar, record) => withTurn(sofar, record, '2030-01-01T00:01:00Z'), journal)
}

function left(journal: Journal): readonly string[] {
  return turnsLeft(journal).map((one) => `${one.cell.system} ${one.run}`)
}

describe('journal', () => {
  test('what was measured is not measured again', () => {
    const journal = play(setup(), turn('pg-boss', 1, 5), turn('graphile-worker', 1, 7))
    expect(left(setup())).toEqual(['pg-boss 1', 'graphile-worker 1', 'graphile-worker 2', 'pg-boss 2'])
    expect(left(journal)).toEqual(['graphile-worker 2', 'pg-boss 2'])
  })

  test('the results are there after every turn, with as many runs as there were', () => {
    const journal = play(setup(), turn('pg-boss', 1, 5), turn('graphile-worker', 1, 7), turn('pg-boss', 2, 9))
    expect(journal.results.map(({ system, median, runs }) => ({ system, median, runs }))).toEqual([
      { system: 'pg-boss', median: 7, runs: 2 },
      { system: 'graphile-worker', median: 7, runs: 1 },
    ])
    expect(journal).toMatchObject({ started: '2030-01-01T00:00:00Z', ended: '2030-01-01T00:01:00Z' })
  })

  test('a cell with a broken run has no results until the run was made again', () => {
    const broken = play(setup(), turn('pg-boss', 1, 5), turn('pg-boss', 2, 'failed'))
    expect(broken.results).toEqual([])
    expect(left(withoutFailures(broken))).toContain('pg-boss 2')
    expect(play(withoutFailures(broken), turn('pg-boss', 2, 9)).results).toMatchObject([{ median: 7, runs: 2 }])
  })

  test('on another machine or with other versions it cannot be gone on with, and it says why', () => {
    expect(differencesOf(setup(), about)).toEqual([])
    expect(differencesOf(setup(), { ...about, versions: { millrace: '2' } })).toEqual([
      'versions was {"millrace":"1"} and is now {"millrace":"2"}',
    ])
    expect(differencesOf(setup(), { ...about, machine: { ...about.machine, cores: 4 }, node: 'v26' })).toHaveLength(2)
  })
})

describe('its file', () => {
  function folder(): string {
    const dir = mkdtempSync(join(tmpdir(), 'millrace-journal-'))
    onTestFinished(() => rmSync(dir, { recursive: true }))
    return dir
  }

  test('it is read as it was written, and nothing else is left beside it', () => {
    const dir = join(folder(), 'new')
    const journal = play(setup(), turn('pg-boss', 1, 5))
    writeJournal(join(dir, 'a.json'), setup())
    writeJournal(join(dir, 'a.json'), journal)
    expect(readJournal(join(dir, 'a.json'))).toEqual(journal)
    expect(readdirSync(dir)).toEqual(['a.json'])
    expect(readFileSync(join(dir, 'a.json'), 'utf8')).toMatch(/\n$/)
  })

  test.each([
    ['{"results": []}', 'not a file of results'],
    ['{"turns": [], "plan": {"cells": [{"scenario": "drain-1", "system": "pg-boss"}]}}', 'older benchmark'],
    ['{"turns": [], "plan": {"cells": [{"runs": 1, "scenario": "gone", "system": "pg-boss"}]}}', 'plans gone'],
    ['{"turns": [], "plan": {"cells": [{"runs": 1, "scenario": "drain-1", "system": "nobody"}]}}', 'with nobody'],
  ])('%s is refused', (text, reason) => {
    const file = join(folder(), 'a.json')
    writeFileSync(file, text)
    expect(() => readJournal(file)).toThrow(reason)
  })

  test('a new one has a name by its time', () => {
    expect(usualFile('r', '2030-01-01T10:20:30.456Z')).toBe(join('r', 'bench', 'results', '2030-01-01T10-20-30.json'))
  })
})
