// The screen of `millrace top`: whatever is to be shown, it fits the screen it is shown on.
import { describe, expect, test } from 'vitest'
import { JOB_STATUSES } from '../core/job.ts'
import type { JobStatus } from '../core/job.ts'
import { decideHealth } from '../observability/health.ts'
import type { HealthReport } from '../observability/health.ts'
import { pressed } from './commands/top.ts'
import { keysOf } from './full-screen.ts'
import { cellsOf } from './text.ts'
import { renderTop } from './top-view.ts'
import type { TopFacts, TopState, TopWorker } from './top-view.ts'

const NOW = Date.UTC(2030, 0, 1)
const connection = 'default'

function reportOf(
  queues: readonly (readonly [name: string, numbers: Partial<Record<JobStatus, number>>])[],
): HealthReport {
  const counts = queues.map(([queue, numbers]) => ({
    queue,
    connection,
    oldestReadyAtMs: numbers.queued === undefined ? null : NOW - 90_000,
    counts: Object.fromEntries(JOB_STATUSES.map((status) => [status, numbers[status] ?? 0])) as Record<
      JobStatus,
      number
    >,
  }))
  const recent = new Map([['default\nmail', { seconds: 10, arrived: 55, completed: 1_234, failed: 1, cancelled: 0 }]])
  return decideHealth({ queues: [], counts, workers: [], nowMs: NOW, recent })
}

const WORKER: TopWorker = {
  id: '019f0000-0000-7000-8000-0000000000ab',
  host: 'worker-1',
  pid: 77,
  queues: ['mail', 'push'],
  running: 3,
  concurrency: 10,
  isLive: true,
  beatMs: 1_500,
  blockedMs: 0,
  rssBytes: 120 * 1024 * 1024,
  cpuPercent: 42.4,
  state: 'running',
}
const FACTS: TopFacts = {
  report: reportOf([
    ['mail', { queued: 3, running: 2 }],
    ['push', { queued: 9 }],
    ['audit', { failed: 4 }],
  ]),
  workers: [WORKER],
  failures: [{ at: NOW - 3_000, queue: 'audit', name: 'note', id: WORKER.id, message: 'Error: disk full' }],
  nowMs: NOW,
}
const STATE: TopState = {
  facts: FACTS,
  store: 'postgres://ops@db/app',
  trouble: null,
  everyMs: 2_000,
  isPaused: false,
  isHelp: false,
  sort: 'ready',
  scroll: 0,
}
const plain = { width: 120, height: 40, color: false }
const queuesIn = (lines: readonly string[]): readonly string[] =>
  lines.flatMap((line) => /^(mail|push|audit|q\d+) /.exec(line)?.[1] ?? [])

describe('the screen', () => {
  test('O5 has queues with rates and ages, workers with memory, failures and keys', () => {
    const lines = renderTop(STATE, plain)
    const text = lines.join('\n')
    expect(lines).toHaveLength(40)
    expect(lines[0]).toBe('millrace top  postgres://ops@db/app  every 2s  by ready')
    expect(lines[1]).toContain('ready 12, running 2, scheduled 0, blocked 0, failed 4; in 5.5/s, done 123/s')
    expect(text).toMatch(/^mail +3 +2 +0 +5\.5 +123 +0\.1 +1m 30s +0$/m)
    expect(text).toMatch(/^0000000000ab +worker-1 +77 +running +3\/10 +120 MB +42 % +1s +mail,push$/m)
    expect(text).toMatch(/^3s ago +note +audit .* Error: disk full$/m)
    expect(text).toContain('! queue push has 9 jobs ready and no live worker')
    expect(lines.at(-1)).toBe('q quit  p pause  s sort  ↓↑ scroll  ? help')
  })

  test.each([
    [200, 60],
    [80, 24],
    [60, 10],
    [40, 5],
    [20, 3],
    [7, 2],
    [1, 1],
  ])('O5 fits %i × %i, in colour and without, whatever is on it', (width, height) => {
    const long = '長い名前-'.repeat(30)
    const many = Array.from({ length: 300 }, (_, at) => [`q${at}`, { queued: at }] as const)
    const facts: TopFacts = {
      ...FACTS,
      report: reportOf([...many, [long, { queued: 1 }]]),
      workers: Array.from({ length: 50 }, () => ({ ...WORKER, host: long })),
      failures: Array.from({ length: 10 }, () => ({ ...FACTS.failures[0]!, message: `\u001b[31m${long}\n${long}` })),
    }
    for (const color of [true, false]) {
      for (const change of [{}, { isHelp: true }, { facts: null }, { trouble: { message: long, forMs: 61_000 } }]) {
        const lines = renderTop({ ...STATE, facts, ...change }, { width, height, color })
        expect(lines.length).toBeLessThanOrEqual(height)
        for (const line of lines) {
          // oxlint-disable-next-line no-control-regex -- colours take no room
          const bare = line.replaceAll(/\u001b\[\d+m/g, '')
          expect(cellsOf(bare), JSON.stringify(line)).toBeLessThanOrEqual(width)
          expect(bare).not.toContain('\u001b')
          if (!color) expect(line).toBe(bare)
        }
      }
    }
  })

  test('O5 sorts and scrolls, and says what is not shown', () => {
    expect(queuesIn(renderTop(STATE, plain))).toEqual(['push', 'mail', 'audit'])
    expect(queuesIn(renderTop({ ...STATE, sort: 'rate' }, plain))).toEqual(['mail', 'audit', 'push'])
    expect(queuesIn(renderTop({ ...STATE, sort: 'failed' }, plain))).toEqual(['audit', 'mail', 'push'])
    expect(queuesIn(renderTop({ ...STATE, sort: 'name' }, plain))).toEqual(['audit', 'mail', 'push'])
    const scrolled = renderTop({ ...STATE, scroll: 2 }, plain)
    expect(queuesIn(scrolled)).toEqual(['audit'])
    expect(scrolled.join('\n')).toContain('2 queues not shown')
  })

  test('O5 an outage is shown above the last numbers', () => {
    const lines = renderTop({ ...STATE, trouble: { message: 'connection refused', forMs: 12_345 } }, plain)
    expect(lines[1]).toContain('no answer for 12s: connection refused')
    expect(queuesIn(lines)).toHaveLength(3)
    const first = renderTop({ ...STATE, facts: null, trouble: { message: 'refused', forMs: 0 } }, plain)
    expect(first[1]).toBe('no answer for 0ms: refused')
  })
})

describe('keys', () => {
  test('O5 come one by one, also when the terminal sends them together', () => {
    expect(keysOf('jk\u001b[A\u001bOB\u001b[6~?\u0003q')).toEqual([
      'j',
      'k',
      'up',
      'down',
      'page-down',
      '?',
      'ctrl-c',
      'q',
    ])
    expect(keysOf('\u001b')).toEqual(['escape'])
  })

  test('O5 scroll within what there is, sort in a circle, pause and help', () => {
    const after = (keys: string): TopState => keysOf(keys).reduce(pressed, STATE)
    expect(after('k').scroll).toBe(0)
    expect(after('jjjjj').scroll).toBe(2)
    expect(after('jjk').scroll).toBe(1)
    expect(after('G').scroll).toBe(2)
    expect(after('Gg').scroll).toBe(0)
    expect(after('s').sort).toBe('rate')
    expect(after('sssss').sort).toBe('ready')
    expect(after('p').isPaused).toBe(true)
    expect(after('pp').isPaused).toBe(false)
    expect(after('?').isHelp).toBe(true)
    expect(after('?p')).toMatchObject({ isHelp: false, isPaused: false })
    expect(after('x')).toEqual(STATE)
  })
})
