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
import { allTargets, cellsOf, turnsOf } from '../../bench/plan.ts'
import { callsIn, infoField } from '../../bench/redis-info.ts'
import { parseStat } from '../../bench/server-cpu.ts'
import { median, percentile, summarise } from '../../bench/stats.ts'
import type { OpenSystem } from '../../bench/system.ts'

function cells(...argv: string[]) {
  const command = parseCommand(argv)
  if (command.kind !== 'run') throw new Error(`expected a plan, got ${JSON.stringify(command)}`)
  return command.plan.cells
}

describe('arguments', () => {
  test('without any, the usual scenarios run on every system with their own number of jobs; --full adds the others', () => {
    const command = parseCommand([])
    expect(command).toMatchObject({ kind: 'run', json: undefined })
    expect(cells()).toContainEqual({
      system: 'millrace',
      backend: 'memory',
      scenario: 'drain-100',
      jobs: 200_000,
      runs: 3,
    })
    expect(cells()).toContainEqual({
      system: 'pg-boss',
      backend: 'postgres',
      scenario: 'drain-100',
      jobs: 80_000,
      runs: 3,
    })
    const scenariosOf = (...argv: string[]) => [...new Set(cells(...argv).map(({ scenario }) => scenario))]
    expect(scenariosOf('--full')).toEqual(SCENARIOS.map(({ name }) => name))
    expect(scenariosOf()).toEqual(SCENARIOS.filter(({ usual }) => usual?.length !== 0).map(({ name }) => name))
    expect(scenariosOf('--scenario', 'drain-1')).toEqual(['drain-1'])
    expect(new Set(cells().map(({ system }) => system))).toEqual(new Set(Object.keys(SYSTEMS)))
  })

  test('systems, backends and scenarios can be chosen, in the order given', () => {
    expect(cells('--only', 'millrace:memory', '--scenario', 'footprint,drain-1', '--jobs', '50')).toEqual([
      { system: 'millrace', backend: 'memory', scenario: 'footprint', jobs: 50, runs: 1 },
      { system: 'millrace', backend: 'memory', scenario: 'drain-1', jobs: 50, runs: 3 },
    ])
    expect(cells('--only', 'graphile-worker,pg-boss', '--scenario', 'drain-1').map(({ system }) => system)).toEqual([
      'graphile-worker',
      'pg-boss',
    ])
  })

  test('a backend on request is measured only when it is named', () => {
    const backendsOf = (...argv: string[]) => [...new Set(cells(...argv).map(({ backend }) => backend))]
    expect(backendsOf().sort()).toEqual(['hybrid', 'memory', 'postgres', 'redis'])
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

  test('of two processes only ours is measured, unless somebody asks', () => {
    const systemsOf = (...argv: string[]) =>
      new Set(cells(...argv).flatMap(({ scenario, system }) => (scenario === 'drain-100x2' ? [system] : [])))
    expect(systemsOf()).toEqual(new Set(['millrace']))
    const everybody = new Set(Object.keys(SYSTEMS))
    expect(systemsOf('--full')).toEqual(everybody)
    expect(systemsOf('--scenario', 'drain-100x2')).toEqual(everybody)
  })

  test('runs and the file for the results are taken', () => {
    expect(parseCommand(['--runs', '7', '--json', 'out.json'])).toMatchObject({ json: 'out.json' })
    expect(new Set(cells('--runs', '7').map(({ runs }) => runs))).toEqual(new Set([7]))
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
    const turns = turnsOf(cellsOf(targets, scenarios, { runs: 2 }))
    expect(turns.map(({ cell, run }) => `${cell.scenario} ${cell.system} ${run}`)).toEqual([
      'drain-1 millrace 1',
      'drain-1 pg-boss 1',
      'drain-1 bullmq 1',
      'drain-1 bullmq 2',
      'drain-1 pg-boss 2',
      'drain-1 millrace 2',
      'footprint millrace 1',
      'footprint pg-boss 1',
      'footprint bullmq 1',
      'footprint bullmq 2',
      'footprint pg-boss 2',
      'footprint millrace 2',
    ])
  })

  test('every round has an order of its own, so that nobody always follows the same one', () => {
    const everybody = cellsOf(
      allTargets(),
      SCENARIOS.filter(({ name }) => name === 'drain-100'),
      { runs: 5 },
    )
    const turns = turnsOf(everybody)
    const orders = [1, 2, 3, 4, 5].map((round) => turns.filter(({ run }) => run === round).map(({ cell }) => cell))
    for (const order of orders) expect(new Set(order)).toEqual(new Set(everybody))
    for (const cell of everybody) {
      const before = orders.slice(0, 3).map((order) => order[order.indexOf(cell) - 1])
      // Who begins twice has nobody before it.
      expect(new Set(before).size, `${cell.system}:${cell.backend}`).toBeGreaterThanOrEqual(2)
    }
    expect(turnsOf(everybody)).toEqual(turns)
  })

  test('what is about one of ours is played by nobody else, whoever asks', () => {
    const playing = cells('--scenario', 'drain-100-defaults').map(({ system, backend }) => `${system}:${backend}`)
    expect(playing).toEqual(['millrace:hybrid'])
    expect(cells().filter(({ scenario }) => scenario === 'drain-100-defaults')).toMatchObject([{ runs: 3 }])
  })

  test('ours whose floors are near have more runs than the others', () => {
    const runsOf = (target: string) => cells('--only', target, '--scenario', 'drain-100')[0]?.runs
    expect([runsOf('millrace:postgres'), runsOf('millrace:hybrid'), runsOf('pg-boss:postgres')]).toEqual([5, 5, 3])
    expect(Math.min(...cells().map(({ runs, scenario }) => (scenario === 'footprint' ? 3 : runs)))).toBe(3)
  })

  test('one process and two take turns', () => {
    const scenarios = SCENARIOS.filter(({ name }) => name.startsWith('handlers'))
    const turns = turnsOf(cellsOf([{ system: 'millrace', backend: 'redis' }], scenarios, { runs: 2 }))
    expect(turns.map(({ cell, run }) => `${cell.scenario} ${run}`)).toEqual([
      'handlers-10ms 1',
      'handlers-10msx2 1',
      'handlers-10msx2 2',
      'handlers-10ms 2',
    ])
  })

  test('who has more runs goes on when the others are done', () => {
    const [first, second] = cellsOf(
      targets,
      SCENARIOS.filter(({ name }) => name === 'drain-1'),
    )
    const turns = turnsOf([
      { ...first!, runs: 1 },
      { ...second!, runs: 2 },
    ])
    expect(turns.map(({ cell, run }) => `${cell.system} ${run}`)).toEqual(['millrace 1', 'pg-boss 1', 'pg-boss 2'])
  })

  test('a backend is left out where a scenario needs several processes or tables', () => {
    const planned = cellsOf(targets, SCENARIOS)
    const without = (backend: string) =>
      SCENARIOS.map(({ name }) => name).filter(
        (name) => !planned.some((cell) => cell.backend === backend && cell.scenario === name),
      )
    expect(without('memory')).toEqual([
      'drain-1x2',
      'drain-10x2',
      'drain-100x2',
      'drain-100-defaults',
      'drain-100-fresh',
      'drain-100-1ms',
      'drain-100-1m',
      'handlers-10ms',
      'handlers-10msx2',
      'held-transaction',
    ])
    expect(without('redis')).toEqual(['drain-100-defaults', 'drain-100-fresh', 'held-transaction'])
    expect(without('postgres')).toEqual(['drain-100-defaults'])
  })

  test('a hybrid plays what PostgreSQL plays, and a backlog on Redis is as long', () => {
    const jobsOf = (backend: string) =>
      cellsOf([{ system: 'millrace', backend }], SCENARIOS).map(({ scenario, jobs }) => ({ scenario, jobs }))
    const ofBoth = jobsOf('hybrid').filter(({ scenario }) => scenario !== 'drain-100-defaults')
    expect(ofBoth).toEqual(jobsOf('postgres'))
    const drains = (backend: string) => jobsOf(backend).filter(({ scenario }) => scenario.startsWith('drain-'))
    expect(drains('redis')).toEqual(drains('postgres').filter(({ scenario }) => scenario !== 'drain-100-fresh'))
  })
})

describe('how long it takes', () => {
  const usualMinutes = (...argv: string[]) => (START_S + estimateS(turnsOf(cells(...argv)))) / 60

  test('the usual plan is within half an hour on 2 cores, and the help says so', () => {
    expect(usualMinutes()).toBeLessThan(29)
    expect(USAGE).toContain(inWords(60 * usualMinutes()))
    expect(USAGE).toContain(inWords(60 * usualMinutes('--full')))
  })

  test('fewer jobs take less, and many more at most twice as long, because time stops them', () => {
    const secondsOf = (jobs: number) =>
      estimateS(turnsOf(cells('--only', 'pg-boss', '--scenario', 'drain-1', '--jobs', `${jobs}`)))
    expect(secondsOf(500)).toBeLessThan(secondsOf(80_000) / 2)
    expect(secondsOf(10_000_000)).toBeLessThan(secondsOf(80_000) * 2)
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
