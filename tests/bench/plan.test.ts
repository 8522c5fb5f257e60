// The benchmark's command line, its plan and its statistics: what a wrong flag says, who is measured when, what
// a median is.
import { describe, expect, test } from 'vitest'
import { USAGE, parseCommand } from '../../bench/args.ts'
import { SCENARIOS, SYSTEMS } from '../../bench/catalogue.ts'
import { workerShares } from '../../bench/clocks.ts'
import type { Clocks } from '../../bench/clocks.ts'
import type { Crew } from '../../bench/crew.ts'
import { START_S, estimateS, inWords } from '../../bench/estimate.ts'
import { untilFinished } from '../../bench/finish.ts'
import { cellsOf, turnsOf } from '../../bench/plan.ts'
import type { Cell } from '../../bench/plan.ts'
import { ratiosOf } from '../../bench/ratios.ts'
import { callsIn, infoField } from '../../bench/redis-info.ts'
import { aboutOf, rowsOf } from '../../bench/report.ts'
import type { Report, Row } from '../../bench/report.ts'
import type { Metric } from '../../bench/scenario.ts'
import { parseStat } from '../../bench/server-cpu.ts'
import { median, percentile, summarise } from '../../bench/stats.ts'
import type { OpenSystem } from '../../bench/system.ts'
import { tableOf, textOf } from '../../bench/table.ts'

function cells(...argv: string[]) {
  const command = parseCommand(argv)
  if (command.kind !== 'run') throw new Error(`expected a plan, got ${JSON.stringify(command)}`)
  return command.plan.cells
}

describe('arguments', () => {
  test('without any, the usual scenarios run on every system with their own number of jobs; --full adds the others', () => {
    const command = parseCommand([])
    expect(command).toMatchObject({ kind: 'run', plan: { runs: 3 }, json: undefined })
    expect(cells()).toContainEqual({ system: 'millrace', backend: 'memory', scenario: 'drain-100', jobs: 200_000 })
    expect(cells()).toContainEqual({ system: 'pg-boss', backend: 'postgres', scenario: 'drain-100', jobs: 50_000 })
    const scenariosOf = (...argv: string[]) => [...new Set(cells(...argv).map(({ scenario }) => scenario))]
    expect(scenariosOf('--full')).toEqual(SCENARIOS.map(({ name }) => name))
    expect(scenariosOf()).toEqual(SCENARIOS.filter(({ isFullOnly }) => !isFullOnly).map(({ name }) => name))
    expect(scenariosOf('--scenario', 'drain-1')).toEqual(['drain-1'])
    expect(new Set(cells().map(({ system }) => system))).toEqual(new Set(Object.keys(SYSTEMS)))
  })

  test('systems, backends and scenarios can be chosen, in the order given', () => {
    expect(cells('--only', 'millrace:memory', '--scenario', 'footprint,drain-1', '--jobs', '50')).toEqual([
      { system: 'millrace', backend: 'memory', scenario: 'footprint', jobs: 50 },
      { system: 'millrace', backend: 'memory', scenario: 'drain-1', jobs: 50 },
    ])
    expect(cells('--only', 'graphile-worker,pg-boss', '--scenario', 'drain-1').map(({ system }) => system)).toEqual([
      'graphile-worker',
      'pg-boss',
    ])
  })

  test('a backend on request is measured only when it is named', () => {
    const backendsOf = (...argv: string[]) => [...new Set(cells(...argv).map(({ backend }) => backend))]
    expect(backendsOf()).toEqual(['memory', 'postgres', 'redis', 'hybrid'])
    expect(backendsOf('--only', 'bee-queue')).toEqual(['redis'])
    expect(backendsOf('--only', 'bee-queue:redis-no-aof')).toEqual(['redis-no-aof'])
  })

  test('a name given twice is measured once', () => {
    expect(cells('--only', 'pg-boss', '--scenario', 'drain-1, drain-1').length).toBe(1)
  })

  test('a scenario that waits between jobs bounds their number', () => {
    expect(cells('--only', 'bee-queue', '--scenario', 'latency-idle', '--jobs', '1000000')).toMatchObject([
      { jobs: 1000 },
    ])
  })

  test('runs and the file for the results are taken', () => {
    expect(parseCommand(['--runs', '7', '--json', 'out.json'])).toMatchObject({ plan: { runs: 7 }, json: 'out.json' })
  })

  test('a benchmark that goes on takes its plan from its file', () => {
    expect(parseCommand(['--resume', 'out.json'])).toEqual({ kind: 'resume', file: 'out.json' })
  })

  test('--help is answered before anything else is checked, and names all there is', () => {
    expect(parseCommand(['--help', '--runs', 'x'])).toEqual({ kind: 'help' })
    for (const name of [...Object.keys(SYSTEMS), ...SCENARIOS.map((scenario) => scenario.name)]) {
      expect(USAGE).toContain(` ${name} `)
    }
  })

  test.each([
    [['--fast'], '--fast'],
    [['drain-1'], 'drain-1'],
    [['--only', 'nobody'], 'no such system'],
    [['--only', 'constructor'], 'no such system'],
    [['--only', 'millrace:tape'], 'measured on memory'],
    [['--only', 'millrace:memory:x'], 'no such system'],
    [['--only', ','], 'at least one'],
    [['--only', 'millrace:memory', '--scenario', 'drain-100x2'], 'cannot be played on memory'],
    [['--only', 'bullmq:redis', '--scenario', 'held-transaction'], 'cannot be played on redis'],
    [['--scenario', 'drain-7'], 'no such scenario'],
    [['--runs', '0'], 'whole number'],
    [['--runs', '1.5'], 'whole number'],
    [['--jobs', '-3'], '--jobs'],
    [['--jobs'], '--jobs'],
    [['--json='], 'name of a file'],
    [['--resume='], 'name of a file'],
    [['--resume', 'out.json', '--runs', '5'], 'no other option'],
    [['--resume', 'out.json', '--full'], 'no other option'],
  ])('%j is refused with a reason', (argv, reason) => {
    const command = parseCommand(argv)
    expect(command.kind).toBe('wrong')
    expect(command).toHaveProperty('message', expect.stringContaining(reason))
  })
})

describe('plan', () => {
  const targets = [
    { system: 'millrace', backend: 'memory' },
    { system: 'pg-boss', backend: 'postgres' },
    { system: 'bullmq', backend: 'redis' },
  ]

  test('systems take turns within a scenario, and a scenario is done before the next begins', () => {
    const scenarios = SCENARIOS.filter(({ name }) => name === 'drain-1' || name === 'footprint')
    const turns = turnsOf(cellsOf(targets, scenarios, undefined), 2)
    expect(turns.map(({ cell, run }) => `${cell.scenario} ${cell.system} ${run}`)).toEqual([
      'drain-1 millrace 1',
      'drain-1 pg-boss 1',
      'drain-1 bullmq 1',
      'drain-1 millrace 2',
      'drain-1 pg-boss 2',
      'drain-1 bullmq 2',
      'footprint millrace 1',
      'footprint pg-boss 1',
      'footprint bullmq 1',
      'footprint millrace 2',
      'footprint pg-boss 2',
      'footprint bullmq 2',
    ])
  })

  test('a backend is left out where a scenario needs several processes or tables', () => {
    const planned = cellsOf(targets, SCENARIOS, undefined)
    const without = (backend: string) =>
      SCENARIOS.map(({ name }) => name).filter(
        (name) => !planned.some((cell) => cell.backend === backend && cell.scenario === name),
      )
    expect(without('memory')).toEqual([
      'drain-1x2',
      'drain-10x2',
      'drain-100x2',
      'drain-100-fresh',
      'drain-100-1ms',
      'drain-100-1m',
      'handlers-10msx2',
      'held-transaction',
    ])
    expect(without('redis')).toEqual(['drain-100-fresh', 'held-transaction'])
    expect(without('postgres')).toEqual([])
  })

  test('a hybrid plays what PostgreSQL plays, and a backlog on Redis is as long', () => {
    const jobsOf = (backend: string) =>
      cellsOf([{ system: 'millrace', backend }], SCENARIOS, undefined).map(({ scenario, jobs }) => ({ scenario, jobs }))
    expect(jobsOf('hybrid')).toEqual(jobsOf('postgres'))
    const drains = (backend: string) => jobsOf(backend).filter(({ scenario }) => scenario.startsWith('drain-'))
    expect(drains('redis')).toEqual(drains('postgres').filter(({ scenario }) => scenario !== 'drain-100-fresh'))
  })
})

describe('how long it takes', () => {
  const usualMinutes = (...argv: string[]) => (START_S + 3 * estimateS(cells(...argv))) / 60

  test('the usual plan is within half an hour on 2 cores with time to spare, and the help says so', () => {
    expect(usualMinutes()).toBeLessThan(26)
    expect(USAGE).toContain(inWords(60 * usualMinutes()))
    expect(USAGE).toContain(inWords(60 * usualMinutes('--full')))
  })

  test('fewer jobs take less, and many more at most twice as long, because time stops them', () => {
    const secondsOf = (jobs: number) =>
      estimateS(cells('--only', 'pg-boss', '--scenario', 'drain-1', '--jobs', `${jobs}`))
    expect(secondsOf(500)).toBeLessThan(secondsOf(50_000) / 2)
    expect(secondsOf(10_000_000)).toBeLessThan(secondsOf(50_000) * 2)
  })

  test('every scenario says how long it takes wherever it can be played', () => {
    for (const { name, jobs, seconds } of SCENARIOS) {
      expect(Object.keys(seconds), name).toEqual(expect.arrayContaining(Object.keys(jobs)))
    }
  })

  test('it is said in seconds, minutes or hours', () => {
    expect([inWords(12.1), inWords(100), inWords(3600 * 2.5)]).toEqual(['13 s', '2 minutes', '2.5 hours'])
  })
})

describe('the end of a measurement', () => {
  /** A store that answers these counts one after the other, one second apart, and clocks that stop once. */
  function setup(counts: readonly number[]) {
    const stops: number[] = []
    let asked = 0
    const never = (): never => {
      throw new Error('not part of this test')
    }
    const system: OpenSystem = {
      unfinished: async () => counts[asked++] ?? 0,
      enqueue: never,
      enqueueMany: never,
      work: never,
      close: never,
    }
    const clocks: Clocks = { elapsedMs: () => asked * 1000, stop: () => void stops.push(asked), values: never }
    // All handlers have started before anybody asks.
    const crew: Crew = {
      isLocal: true,
      processes: 1,
      handled: async () => true,
      start: never,
      stop: never,
      cpuUs: never,
      starts: never,
      close: never,
    }
    return { stops, finish: () => untilFinished({ system, crew, clocks, handled: 9, capMs: 4000 }) }
  }

  test('it is not when the last handler has started, but when the store has no unfinished job', async () => {
    const { stops, finish } = setup([5, 2, 0])
    expect(await finish()).toBe(0)
    expect(stops).toEqual([3])
  })

  test('when the time is over the clocks stop, and what is left does not count', async () => {
    const { stops, finish } = setup([9, 8, 7, 6, 5, 4])
    expect(await finish()).toBe(5)
    expect(stops).toEqual([4])
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

  test('of several worker processes the busiest and the least busy are told, in percent of a core', () => {
    expect(workerShares([], 1000)).toEqual({})
    expect(workerShares([500_000], 1000)).toEqual({ worker_cpu_percent: 50 })
    expect(workerShares([500_000, 900_000], 1000)).toEqual({ worker_cpu_percent: 90, worker_cpu_min_percent: 50 })
  })

  test('processor time is read from the fields behind a name with spaces and brackets', () => {
    const fields = 'S 1 1 1 0 -1 4194560 10 20 0 0 150 50 7 3 20 0 1 0 99'
    expect(parseStat(`42 (postgres: a) (b) ${fields}`)).toEqual({ own: 200, inherited: 10 })
  })
})

describe('what Redis says', () => {
  const info = '# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\n'
  const stats =
    '# Commandstats\r\ncmdstat_evalsha:calls=3,usec=9,usec_per_call=3.00,rejected_calls=7\r\n' +
    'cmdstat_client|setname:calls=1,usec=1\r\ncmdstat_lpush:calls=30,usec=30\r\n'

  test('a field is found by its whole name, and its absence is an error', () => {
    expect(infoField(info, 'redis_version')).toBe('7.0.15')
    expect(() => infoField(info, 'redis')).toThrow('has no redis')
  })

  test('calls of all commands are added, those of subcommands and of scripts too', () => {
    expect(callsIn(stats)).toBe(34)
  })
})

describe('report', () => {
  const cell: Cell = { system: 'pg-boss', backend: 'postgres', scenario: 'drain-1', jobs: 10 }
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
