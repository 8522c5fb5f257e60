// The page about speed: it says what the results say, wherever a peer is ahead too, and what is on disk is made of what is
// kept in docs/data/bench.json.
import { describe, expect, test } from 'vitest'
import { SCENARIOS } from '../../bench/catalogue.ts'
import { chartOf } from '../../bench/page/chart.ts'
import { chartsOf } from '../../bench/page/charts.ts'
import { digestOf } from '../../bench/page/digest.ts'
import { CHARTS_FOLDER, DATA_PATH, filesOf } from '../../bench/page/files.ts'
import { absentOf, hardestOf, lossesOf, missingOf, secondProcessesOf } from '../../bench/page/findings.ts'
import { displayName, shown } from '../../bench/page/names.ts'
import { warningOf } from '../../bench/page/origin.ts'
import { renderPage } from '../../bench/page/page.ts'
import { FLOORS, standingsOf, unsetOf, wordsOf } from '../../bench/page/floors.ts'
import { renderSummary, withSummary } from '../../bench/page/summary.ts'
import { allTargets, usualCellsOf } from '../../bench/plan.ts'
import type { Cell } from '../../bench/plan.ts'
import { rowsOf } from '../../bench/report.ts'
import type { Report, Row } from '../../bench/report.ts'
import type { Values } from '../../bench/scenario.ts'
import { filesIn, readText } from '../tidy/source.ts'

/** Three runs, with a spread of one part in a hundred. */
function rows(target: string, scenario: string, values: Values, jobs = 1_000_000): readonly Row[] {
  const [system = '', backend = ''] = target.split(':')
  const runs = [0.99, 1, 1.01].map((factor) => ({
    values: Object.fromEntries(Object.entries(values).map(([metric, value]) => [metric, value * factor])),
  }))
  return rowsOf({ system, backend, scenario, jobs, runs: runs.length }, runs)
}

function reportWith(...results: readonly (readonly Row[])[]): Report {
  return {
    started: '2030-01-01T10:00:00.000Z',
    ended: '2030-01-01T10:30:00.000Z',
    machine: { cpu: 'Slow', cores: 2, memoryGiB: 4, os: 'linux 1' },
    node: 'v24.0.0',
    versions: { millrace: '1.2.3 abc', bullmq: '9.9.9' },
    durability: { 'millrace:postgres': 'fsync' },
    settings: { 'millrace:postgres': 'defaults' },
    notes: ['a note'],
    method: ['with care.'],
    results: results.flat(),
  }
}

const report = reportWith(
  rows('millrace:memory', 'drain-100', { jobs_per_s: 200_000 }),
  rows('millrace:postgres', 'drain-100', { jobs_per_s: 40_000, cpu_us_per_job: 20 }),
  rows('pg-boss:postgres', 'drain-100', { jobs_per_s: 20_000, cpu_us_per_job: 10 }),
  rows('graphile-worker:postgres', 'drain-100', { jobs_per_s: 50_000, cpu_us_per_job: 30 }),
  rows('millrace:redis', 'latency-500', { p50_ms: 2, p99_ms: 4 }),
  rows('bee-queue:redis', 'latency-500', { p50_ms: 1, p99_ms: 4.02 }),
)

describe('findings', () => {
  test('each of our backends stands beside the hardest peer, above 1 when it is better', () => {
    expect(
      hardestOf(report.results).map(({ ours, metric, peer, factor }) => [
        ours,
        metric,
        peer,
        Number(factor.toFixed(2)),
      ]),
    ).toEqual([
      ['millrace:postgres', 'jobs_per_s', 'graphile-worker:postgres', 0.8],
      ['millrace:redis', 'p50_ms', 'bee-queue:redis', 0.5],
      ['millrace:redis', 'p99_ms', 'bee-queue:redis', 1],
    ])
  })

  test('every number in which a peer is ahead is a loss, the largest first, costs apart', () => {
    const { headlines, costs } = lossesOf(report.results)
    expect(headlines.map(({ metric, peer }) => [metric, peer])).toEqual([
      ['p50_ms', 'bee-queue:redis'],
      ['jobs_per_s', 'graphile-worker:postgres'],
    ])
    expect(costs.map(({ metric, peer }) => [metric, peer])).toEqual([['cpu_us_per_job', 'pg-boss:postgres']])
  })

  test('where the runs overlap the order may be chance', () => {
    const clear = hardestOf(report.results).map(({ metric, isClear }) => [metric, isClear])
    expect(clear).toEqual([
      ['jobs_per_s', true],
      ['p50_ms', true],
      ['p99_ms', false],
    ])
  })

  test('our own other backend is no peer', () => {
    const both = [
      ...rows('millrace:hybrid', 'drain-100', { jobs_per_s: 1 }),
      ...rows('millrace:postgres', 'drain-100', { jobs_per_s: 2 }),
    ]
    expect(lossesOf(both)).toEqual({ headlines: [], costs: [] })
  })

  test('what only ours plays by default is not missed of peers, unless one of them has played it', () => {
    const targets = ['millrace:postgres', 'millrace:redis', 'pg-boss:postgres']
    const alone = rows('millrace:postgres', 'handlers-10ms', { jobs_per_s: 900 })
    expect(missingOf(alone, targets)).toEqual([{ scenario: 'handlers-10ms', target: 'millrace:redis' }])
    const beside = [...alone, ...rows('bullmq:redis', 'handlers-10ms', { jobs_per_s: 900 })]
    expect(missingOf(beside, targets).map(({ target }) => target)).toEqual(['millrace:redis', 'pg-boss:postgres'])
    expect(renderSummary(reportWith(report.results, alone))).not.toContain('handlers of 10 ms')
    expect(renderSummary(reportWith(report.results, beside))).toContain('handlers of 10 ms')
  })

  test('the README says with which window the hybrid was measured, and what it does with nothing set', () => {
    const hybrid = rows('millrace:hybrid', 'drain-100', { jobs_per_s: 100_000 })
    expect(renderSummary(reportWith(hybrid))).toContain('its window raised to 160 000 jobs (default 10 000)')
    const unset = rows('millrace:hybrid', 'drain-100-defaults', { jobs_per_s: 60_000 })
    expect(renderSummary(reportWith(hybrid, unset))).toContain('it works off 60 000 (59 400–60 600) no-op jobs/s')
    expect(renderSummary(report)).not.toContain('window')
  })

  test('the hybrid out of the box stands beside PostgreSQL alone, on the page and in the README', () => {
    const results = reportWith(
      rows('millrace:postgres', 'drain-100', { jobs_per_s: 100_000 }),
      rows('pg-boss:postgres', 'drain-100', { jobs_per_s: 20_000 }),
      rows('millrace:hybrid', 'drain-100', { jobs_per_s: 110_000 }),
      rows('millrace:hybrid', 'drain-100-defaults', { jobs_per_s: 60_000 }),
    )
    expect(unsetOf(results.results)?.factor).toBeCloseTo(0.6)
    expect(renderPage(results)).toContain('jobs/s, 0.6 × Millrace on PostgreSQL alone.')
    expect(renderSummary(results)).toContain('no-op jobs/s, fewer than PostgreSQL alone:')
  })

  test('peers that do not play a scenario by default are named, and the README has no empty place', () => {
    const targets = ['millrace:postgres', 'pg-boss:postgres', 'graphile-worker-tuned:postgres']
    const own = [
      ...rows('millrace:postgres', 'produce-consume', { jobs_per_s: 2 }),
      ...rows('graphile-worker-tuned:postgres', 'produce-consume', { jobs_per_s: 1 }),
    ]
    expect(absentOf(own, targets, 'produce-consume')).toEqual(['pg-boss:postgres'])
    const drained = targets.flatMap((target) => rows(target, 'drain-100', { jobs_per_s: 1 }))
    const text = renderSummary(reportWith(own, drained))
    expect(text).toContain('| produce and work at the same time, jobs/s | 2 | 1 | – |')
  })

  test('two processes are put beside one, with the processor time of each', () => {
    const found = secondProcessesOf([
      ...rows('millrace:postgres', 'handlers-10ms', { jobs_per_s: 900 }),
      ...rows('millrace:postgres', 'handlers-10msx2', {
        jobs_per_s: 1800,
        worker_cpu_percent: 30,
        worker_cpu_min_percent: 20,
      }),
      ...rows('pg-boss:postgres', 'handlers-10ms', { jobs_per_s: 900 }),
    ])
    expect(found).toMatchObject([{ target: 'millrace:postgres', factor: 2, cpuPercents: [30, 20] }])
  })

  test('what had to be reached is told with what was, also when it was not', () => {
    const found = standingsOf([
      ...rows('millrace:postgres', 'drain-100', { jobs_per_s: 30 }),
      ...rows('graphile-worker-tuned:postgres', 'drain-100', { jobs_per_s: 20 }),
      ...rows('millrace:hybrid', 'drain-100', { jobs_per_s: 29 }),
      ...rows('millrace:postgres', 'handlers-10ms', { jobs_per_s: 10 }),
      ...rows('millrace:postgres', 'handlers-10msx2', { jobs_per_s: 17 }),
    ])
    expect(found.map(({ ours, other, holds }) => [ours, other, holds])).toEqual([
      ['millrace:postgres', 'graphile-worker-tuned:postgres', true],
      ['millrace:hybrid', 'millrace:postgres', false],
      ['millrace:postgres', 'millrace:postgres', false],
    ])
    expect(found.map(wordsOf).at(-1)).toEqual([
      'handlers-10msx2',
      'Millrace on PostgreSQL',
      '17 (16.8–17.2)',
      'itself in handlers-10ms',
      '10 (9.9–10.1)',
      '1.8 ×',
      '1.7 ×',
      '**no**',
    ])
    // 30 beside 20 is 1.5, but 29.7 beside 20.2 is not; 29 beside 30 could be 29.3 beside 29.7.
    expect(found.map(wordsOf).map((words) => words.at(-1))).toEqual(['yes (the runs overlap)', '**no**', '**no**'])
  })
})

describe('page', () => {
  const page = renderPage(report)

  test('it says when, on what and with which versions', () => {
    expect(page).toContain(
      'Measured on 2030-01-01 on 2 × Slow, 4 GiB, linux 1, with Node v24.0.0, Millrace 1.2.3 abc, bullmq 9.9.9.',
    )
    expect(page).toContain('- a note.')
  })

  test('a number has its spread, and a row its durability', () => {
    expect(page).toMatch(/\| Millrace on PostgreSQL \| 40 000 \(39 600–40 400\) \|.*\| fsync, synchronous_commit on \|/)
  })

  test('it says where a peer is ahead, and by how much', () => {
    const section = page.slice(page.indexOf('## Where we lose'), page.indexOf('## All results'))
    expect(section).toContain('| Graphile Worker on PostgreSQL: 50 000 | 1.25 × |')
    expect(section).toContain('| bee-queue on Redis: 1 | 2 × |')
    expect(section).not.toContain('Millrace on memory')
  })

  test('who has no numbers where others have is named', () => {
    const targets = ['millrace:memory', 'millrace:redis', 'bullmq:redis', 'pg-boss:postgres']
    const settings = Object.fromEntries(targets.map((target) => [target, 'defaults']))
    const failed = { ...reportWith(rows('bullmq:redis', 'drain-100x2', { jobs_per_s: 1 })), settings }
    expect(renderPage(failed)).toContain(
      'a run failed or was not made:\n\n- drain-100x2: Millrace on Redis\n- drain-100x2: pg-boss on PostgreSQL\n\n',
    )
    expect(renderPage({ ...failed, settings: { 'bullmq:redis': 'defaults' } })).not.toContain('Not in the tables')
  })

  test('where nobody is ahead it says so', () => {
    const best = reportWith(
      rows('millrace:redis', 'drain-100', { jobs_per_s: 2 }),
      rows('bullmq:redis', 'drain-100', { jobs_per_s: 1 }),
    )
    expect(renderPage(best)).toContain('What a scenario is about:\n\nNone.')
  })

  test('few runs or few jobs come with a warning, and not into the README', () => {
    const short = reportWith(rows('millrace:redis', 'drain-100', { jobs_per_s: 2 }, 100))
    expect(warningOf(report)).toBeUndefined()
    expect(renderPage(short)).toContain('show the form, not the speed')
    expect(renderSummary(short)).not.toContain('|')
    expect(renderSummary(report)).toContain('| no-op jobs, concurrency 100, jobs/s | 40 000 | 20 000 | 50 000 |')
    expect(renderSummary(report)).toContain('| 500 jobs/s, enqueue call to handler, p50 / p99 ms | 2 / 4 | 1 / 4.02 |')
  })

  test('the block of the README is replaced and the rest of it left alone', () => {
    const readme = `before\n${/<!-- bench:start.*/.exec(readText('README.md'))?.[0]}\nold\n<!-- bench:end -->\nafter\n`
    const renewed = withSummary(readme, 'new')
    expect(renewed).toMatch(/^before\n<!-- bench:start.* -->\n\nnew\n\n<!-- bench:end -->\nafter\n$/)
    expect(withSummary(renewed, 'new')).toBe(renewed)
    expect(() => withSummary('nothing', 'new')).toThrow('README.md needs a line')
  })

  test('numbers have three digits that matter, in groups', () => {
    expect([1_234_567, 41_849, 999.6, 3.14159, 0.01234].map(shown)).toEqual([
      '1 230 000',
      '41 800',
      '1 000',
      '3.14',
      '0.0123',
    ])
    expect(displayName('graphile-worker-tuned:postgres')).toBe('Graphile Worker, tuned on PostgreSQL')
  })
})

describe('charts', () => {
  test('one per scenario for what it is about, one more for p99, none for what lives in memory', () => {
    const charts = chartsOf(report)
    expect(charts.map(({ name }) => name)).toEqual(['drain-100.svg', 'latency-500.svg', 'latency-500-p99.svg'])
    expect(charts[0]?.svg).not.toContain('memory')
    // Best first, in words too.
    expect(charts[0]?.svg).toMatch(/Graphile Worker on PostgreSQL 50 000, Millrace on PostgreSQL 40 000, pg-boss/)
    expect(charts[1]?.svg).toMatch(/bee-queue on Redis 1, Millrace on Redis 2/)
  })

  test('a bar is as long as its value, text is escaped, and there are colours for light and dark', () => {
    const bar = { min: 50, max: 100, text: 'x', isOurs: true }
    const svg = chartOf({
      title: 'a < b & "c"',
      description: 'words',
      bars: [
        { ...bar, label: 'whole', value: 100 },
        { ...bar, label: 'half', value: 50, isOurs: false },
      ],
    })
    const [whole = 0, half = 0] = [...svg.matchAll(/class="(?:ours|peer)" .*?width="([\d.]+)"/g)].map(([, w]) =>
      Number(w),
    )
    expect(half).toBe(whole / 2)
    expect(whole).toBeGreaterThan(0)
    expect(svg).toContain('<title id="title">a &lt; b &amp; &quot;c&quot;</title>')
    expect(svg).toContain('<desc id="description">words</desc>')
    expect(svg).toContain('prefers-color-scheme: dark')
  })
})

describe('what is in the repository', () => {
  // What the benchmark wrote; the next test looks at its form.
  const kept = JSON.parse(readText(DATA_PATH)) as Report
  const files = filesOf(kept, readText('README.md'))

  test('the results that are kept have the form in which they are kept', () => {
    expect(digestOf(kept)).toBe(readText(DATA_PATH))
    expect(kept.results.length).toBeGreaterThan(0)
    expect(kept.results.every(({ scenario }) => SCENARIOS.some(({ name }) => name === scenario))).toBe(true)
  })

  test('they are of a usual run at the least: whoever plays one of their scenarios by default has all runs', () => {
    const isKept = ({ system, backend, scenario, runs }: Cell): boolean =>
      kept.results.some(
        (row) => row.system === system && row.backend === backend && row.scenario === scenario && row.runs >= runs,
      )
    expect(usualCellsOf(allTargets()).filter((cell) => !isKept(cell))).toEqual([])
    expect(standingsOf(kept.results)).toHaveLength(FLOORS.length)
  })

  test.each(files)('$path is what `npm run bench:docs` makes of them', ({ path, text }) => {
    expect(readText(path)).toBe(text)
  })

  test('there is no other chart', () => {
    const made = files.map(({ path }) => path).filter((path) => path.endsWith('.svg'))
    expect([...filesIn(CHARTS_FOLDER, '.svg')].sort()).toEqual([...made].sort())
  })
})
