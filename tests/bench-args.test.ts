// The benchmark's command line and its statistics: what a wrong flag says, what a median is.
import { describe, expect, test } from 'vitest'
import { USAGE, parseCommand } from '../bench/args.ts'
import { rowsOf } from '../bench/report.ts'
import { median, percentile, summarise } from '../bench/stats.ts'

function cells(...argv: string[]) {
  const command = parseCommand(argv)
  if (command.kind !== 'run') throw new Error(`expected a plan, got ${JSON.stringify(command)}`)
  return command.cells
}

describe('arguments', () => {
  test('without any, every scenario runs on every system with its own number of jobs', () => {
    const command = parseCommand([])
    expect(command).toMatchObject({ kind: 'run', runs: 5, json: undefined })
    expect(cells()).toContainEqual({ system: 'millrace', backend: 'memory', scenario: 'drain-100', jobs: 200_000 })
    expect(new Set(cells().map(({ scenario }) => scenario)).size).toBe(7)
  })

  test('systems, backends and scenarios can be chosen, in the order given', () => {
    expect(cells('--only', 'millrace:memory', '--scenario', 'footprint,drain-1', '--jobs', '50')).toEqual([
      { system: 'millrace', backend: 'memory', scenario: 'footprint', jobs: 50 },
      { system: 'millrace', backend: 'memory', scenario: 'drain-1', jobs: 50 },
    ])
    expect(cells('--only', 'millrace').length).toBe(cells().length)
  })

  test('a name given twice is measured once', () => {
    expect(cells('--scenario', 'drain-1, drain-1').length).toBe(1)
  })

  test('a scenario that waits between jobs bounds their number', () => {
    expect(cells('--scenario', 'latency-idle', '--jobs', '1000000')).toMatchObject([{ jobs: 1000 }])
  })

  test('runs and the file for the results are taken', () => {
    expect(parseCommand(['--runs', '3', '--json', 'out.json'])).toMatchObject({ runs: 3, json: 'out.json' })
  })

  test('--help is answered before anything else is checked', () => {
    expect(parseCommand(['--help', '--runs', 'x'])).toEqual({ kind: 'help' })
    expect(USAGE).toContain('drain-100')
  })

  test.each([
    [['--fast'], '--fast'],
    [['drain-1'], 'drain-1'],
    [['--only', 'nobody'], 'no such system'],
    [['--only', 'constructor'], 'no such system'],
    [['--only', 'millrace:tape'], 'measured on memory'],
    [['--only', 'millrace:memory:x'], 'no such system'],
    [['--only', ','], 'at least one'],
    [['--scenario', 'drain-7'], 'no such scenario'],
    [['--runs', '0'], 'whole number'],
    [['--runs', '1.5'], 'whole number'],
    [['--jobs', '-3'], '--jobs'],
    [['--jobs'], '--jobs'],
    [['--json='], 'name of a file'],
  ])('%j is refused with a reason', (argv, reason) => {
    const command = parseCommand(argv)
    expect(command.kind).toBe('wrong')
    expect(command).toHaveProperty('message', expect.stringContaining(reason))
  })
})

describe('statistics', () => {
  test('the median is the middle value, or the mean of the two in the middle', () => {
    expect(median([30, 10, 20])).toBe(20)
    expect(median([4, 1, 3, 2])).toBe(2.5)
    expect(median([7])).toBe(7)
  })

  test('a percentile is the nearest rank, always one of the values', () => {
    const hundred = Array.from({ length: 100 }, (_, index) => 100 - index)
    expect(percentile(hundred, 50)).toBe(50)
    expect(percentile(hundred, 99)).toBe(99)
    expect(percentile(hundred, 100)).toBe(100)
    expect(percentile([5, 1], 99)).toBe(5)
    expect(percentile([5, 1], 1)).toBe(1)
  })

  test('a summary leaves its input as it was', () => {
    const values = [3, 1, 2]
    expect(summarise(values)).toEqual({ median: 2, min: 1, max: 3, runs: 3 })
    expect(values).toEqual([3, 1, 2])
  })

  test('nothing cannot be summarised', () => {
    expect(() => summarise([])).toThrow('no values')
    expect(() => percentile([], 50)).toThrow('no values')
    expect(() => percentile([1], 0)).toThrow('percentile')
  })

  test('each metric of a cell becomes one row with its unit', () => {
    const cell = { system: 'millrace', backend: 'memory', scenario: 'drain-1', jobs: 10 }
    const rows = rowsOf(cell, [
      { jobs_per_s: 100, cpu_us_per_job: 5 },
      { jobs_per_s: 300, cpu_us_per_job: 7 },
    ])
    expect(rows).toEqual([
      { ...cell, metric: 'jobs_per_s', median: 200, min: 100, max: 300, runs: 2, unit: 'jobs/s' },
      { ...cell, metric: 'cpu_us_per_job', median: 6, min: 5, max: 7, runs: 2, unit: 'µs' },
    ])
  })
})
