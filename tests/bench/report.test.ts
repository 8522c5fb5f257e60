// What becomes of measurements: rows, ratios, the table and what stands around it.
import { describe, expect, test } from 'vitest'
import type { Cell } from '../../bench/plan.ts'
import { ratiosOf } from '../../bench/ratios.ts'
import { aboutOf, rowsOf } from '../../bench/report.ts'
import type { Report, Row } from '../../bench/report.ts'
import type { Metric } from '../../bench/scenario.ts'
import { tableOf, textOf } from '../../bench/table.ts'

describe('report', () => {
  const cell: Cell = { system: 'pg-boss', backend: 'postgres', scenario: 'drain-1', jobs: 10, runs: 2 }
  const equipment = { peers: { nodeVersion: 'v1.2.3', versions: { 'pg-boss': '9.9.9', bullmq: '8.8.8' } } }

  function reportOf(results: readonly Row[]): Report {
    return { started: '', ended: '', ...aboutOf(results, equipment), results }
  }

  function row(system: string, backend: string, metric: Metric, value: number): Row {
    return rowsOf({ ...cell, system, backend }, [{ values: { [metric]: value } }])[0]!
  }

  test('each metric of a cell becomes one row with its unit and its durability', () => {
    const rows = rowsOf(cell, [
      { values: { jobs_per_s: 100, cpu_us_per_job: 5 } },
      { values: { jobs_per_s: 300, cpu_us_per_job: 7 } },
    ])
    const durability = 'fsync, synchronous_commit on'
    expect(rows).toEqual([
      { ...cell, metric: 'jobs_per_s', median: 200, min: 100, max: 300, runs: 2, unit: 'jobs/s', durability },
      { ...cell, metric: 'cpu_us_per_job', median: 6, min: 5, max: 7, runs: 2, unit: 'µs', durability },
    ])
  })

  test('a metric that one of the runs could not measure is left out', () => {
    const rows = rowsOf(cell, [{ values: { jobs_per_s: 1 } }, { values: { jobs_per_s: 2, cpu_us_per_job: 3 } }])
    expect(rows.map(({ metric, runs }) => ({ metric, runs }))).toEqual([{ metric: 'jobs_per_s', runs: 2 }])
  })

  test('a run that was stopped by time says how far it came', () => {
    const values = { jobs_per_s: 1 }
    const noteOf = (...done: (number | undefined)[]) =>
      rowsOf(
        cell,
        done.map((jobs) => ({ values, ...(jobs !== undefined && { cappedAtJobs: jobs }) })),
      )[0]?.note
    expect(noteOf(4, 6)).toBe('stopped by time (5 s) with 4 to 6 of 10 jobs done')
    expect(noteOf(4, 4)).toBe('stopped by time (5 s) with 4 of 10 jobs done')
    expect(noteOf(undefined, 4)).toBe('stopped by time (5 s) with 4 to 10 of 10 jobs done')
    expect(noteOf(undefined, undefined)).toBeUndefined()
  })

  test('every system is in it with its version, durability and settings, and no other', () => {
    const about = aboutOf([cell], { ...equipment, commit: 'abc1234' })
    expect(about).toMatchObject({
      node: 'v1.2.3',
      versions: { 'pg-boss': '9.9.9', millrace: expect.stringMatching(/^\d+\.\d+\.\d+ abc1234$/) },
      durability: { 'pg-boss:postgres': 'fsync, synchronous_commit on' },
      settings: { 'pg-boss:postgres': expect.stringContaining('1000') },
    })
    expect(about.versions).not.toHaveProperty('bullmq')
  })

  test('settings and method say nothing about what is not measured', () => {
    const ours = { ...cell, system: 'millrace', scenario: 'drain-100' }
    const about = aboutOf([cell, ours, { ...ours, backend: 'hybrid' }], equipment)
    expect(about.settings['millrace:hybrid']).toContain('window raised to 160 000')
    expect(about.settings['millrace:postgres']).not.toContain('window')
    expect(about.settings['pg-boss:postgres']).not.toContain('latency')
    expect(about.method.join(' ')).not.toMatch(/held-transaction|drain-100-fresh|1 ms/)
    const held = aboutOf([{ ...cell, scenario: 'held-transaction' }], equipment)
    expect(held.method.join(' ')).toContain('held-transaction')
  })

  test('Millrace is compared with each peer so that above 1 is always better', () => {
    const rows = [
      row('millrace', 'postgres', 'jobs_per_s', 300),
      row('pg-boss', 'postgres', 'jobs_per_s', 100),
      row('millrace', 'postgres', 'p99_ms', 8),
      row('bullmq', 'postgres', 'p99_ms', 4),
    ]
    expect(ratiosOf(rows)).toEqual([
      { scenario: 'drain-1', metric: 'jobs_per_s', ours: 'millrace:postgres', peer: 'pg-boss:postgres', factor: 3 },
      { scenario: 'drain-1', metric: 'p99_ms', ours: 'millrace:postgres', peer: 'bullmq:postgres', factor: 0.5 },
    ])
    expect(textOf(reportOf(rows))).toContain('How many times better millrace:postgres is')
  })

  test('every row says what its log promises, and a hybrid both', () => {
    const durabilityOf = (backend: string) => row('millrace', backend, 'jobs_per_s', 1).durability
    expect(durabilityOf('redis')).toBe('AOF everysec')
    expect(durabilityOf('redis-no-aof')).toBe('no AOF')
    expect(durabilityOf('hybrid')).toBe('fsync, synchronous_commit on; Redis: AOF everysec')
  })

  test('Redis is compared with Redis of the same log, and the hybrid with everybody and with PostgreSQL alone', () => {
    const rows = [
      row('millrace', 'redis', 'jobs_per_s', 60),
      row('millrace', 'hybrid', 'jobs_per_s', 40),
      row('millrace', 'postgres', 'jobs_per_s', 20),
      row('bullmq', 'redis', 'jobs_per_s', 10),
      row('bullmq', 'redis-no-aof', 'jobs_per_s', 15),
      row('bee-queue', 'redis', 'jobs_per_s', 20),
      row('pg-boss', 'postgres', 'jobs_per_s', 5),
    ]
    expect(ratiosOf(rows).map(({ ours, peer, factor }) => [ours, peer, factor])).toEqual([
      ['millrace:redis', 'bullmq:redis', 6],
      ['millrace:redis', 'bee-queue:redis', 3],
      ['millrace:hybrid', 'millrace:postgres', 2],
      ['millrace:hybrid', 'bullmq:redis', 4],
      ['millrace:hybrid', 'bee-queue:redis', 2],
      ['millrace:hybrid', 'pg-boss:postgres', 8],
      ['millrace:postgres', 'pg-boss:postgres', 4],
    ])
  })

  test('what is neither better nor worse is not compared', () => {
    const rows = [
      row('millrace', 'postgres', 'worker_cpu_percent', 90),
      row('pg-boss', 'postgres', 'worker_cpu_percent', 10),
    ]
    expect(ratiosOf(rows)).toEqual([])
  })

  test('what lives in memory is not compared with what survives a crash', () => {
    const rows = [row('millrace', 'memory', 'jobs_per_s', 300), row('pg-boss', 'postgres', 'jobs_per_s', 100)]
    expect(ratiosOf(rows)).toEqual([])
    expect(textOf(reportOf(rows))).not.toContain('How many times')
  })

  test('numbers stand to the right and words to the left', () => {
    expect(
      tableOf(
        ['name', 'rate'],
        [
          ['a', '5'],
          ['long name', ''],
        ],
      ),
    ).toEqual(['name       rate', 'a             5', 'long name'])
  })
})
