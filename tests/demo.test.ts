// The demo is what people see first: it must end by itself, be right, and fit the terminal.
import { spawn } from 'node:child_process'
import { describe, expect, test } from 'vitest'
import { differences } from '../examples/demo/outcome.ts'
import type { RoundOutcome } from '../examples/demo/outcome.ts'
import { countsLine, happeningLine } from '../examples/demo/plain.ts'
import { renderCounts, renderScreen } from '../examples/demo/screen.ts'
import type { QueueRow, Snapshot } from '../examples/demo/watch.ts'
import { EXPECTED } from '../examples/demo/workload.ts'
import { JOB_STATUSES } from '../src/index.ts'
import type { JobStatus } from '../src/index.ts'
import { ROOT } from './tidy/source.ts'

const DEMO_MAX_MS = 30_000

describe('the demo', () => {
  test('ends by itself with --once, and its counts are what the workload implies', { timeout: 60_000 }, async () => {
    const { code, output, ms } = await demo(['--once'])
    expect(output).toContain('the counts are what the workload implies')
    expect(output).toMatch(/^email +0 +0 +0 +0 +71 +0 +1 /m)
    expect(output).toMatch(/^images +0 +0 +0 +0 +23 +1 +0 /m)
    expect(output).toMatch(/^payments +0 +0 +0 +0 +9 +1 +0$/m)
    expect(output).toMatch(/^crm +0 +0 +0 +0 +9 +1 +0$/m)
    expect(output).toMatch(/^webhooks +0 +0 +0 +0 +10 +0 +0$/m)
    expect(output).toMatch(/^media +0 +0 +0 +0 +4 +0 +0$/m)
    expect(output).toMatch(/^retries 16, duplicates met 1$/m)
    expect(output).toMatch(/^batch: 19 completed, 1 failed of 20; its callback ran once$/m)
    expect(output).toMatch(/^dead letters 3$/m)
    expect(output).toContain('charge-card: card declined (1 attempt)')
    expect(output).toContain('sync-crm: CRM answered 503 (4 attempts)')
    expect(output, 'no escape sequences without a terminal').not.toContain('\u001b')
    expect(code).toBe(0)
    expect(ms).toBeLessThan(DEMO_MAX_MS)
  })

  test('stops gracefully on an interrupt', { timeout: 60_000 }, async () => {
    const { code, output } = await demo([], 'a round of jobs is enqueued')
    expect(output).toContain('stopping: running jobs finish')
    // A worker that stops leaves nothing running.
    expect(output).toMatch(/^total +\d+ +\d+ +\d+ +0 /m)
    expect(code).toBe(0)
  })

  test('explains itself, and refuses what it does not know', { timeout: 60_000 }, async () => {
    expect(await demo(['--help'])).toMatchObject({ code: 0, output: expect.stringContaining('--once') as string })
    expect(await demo(['--onec'])).toMatchObject({ code: 2, output: expect.stringContaining('--onec') as string })
  })
})

describe('the check of the counts', () => {
  test('finds nothing wrong with a round that ended as it must', () => {
    expect(differences(rightOutcome())).toEqual([])
  })

  test.each<[string, Partial<RoundOutcome>]>([
    ['retries: 15, must be 16', { retries: EXPECTED.retries - 1 }],
    ['runs of the batch callback: 2, must be 1', { callbackRuns: 2 }],
    ['jobs of the schedule: 4, must be 3', { tickJobs: 4, ticks: 3 }],
    ['the schedule never ticked', { ticks: 0, tickJobs: 0 }],
    ['dead letters: none', { deadLetters: [] }],
    ['queue email is missing', { queues: rightOutcome().queues.filter(({ name }) => name !== 'email') }],
  ])('says: %s', (message, change) => {
    expect(differences({ ...rightOutcome(), ...change })).toContain(message)
  })
})

describe('the live table', () => {
  const shown = { columns: 80, rows: 34, color: false }

  test('shows queues, throughput, running jobs, batch, schedule, dead letters and events', () => {
    const screen = renderScreen(snapshot(), shown)
    expect(screen).toMatch(/^email +3 +0 +0 +2 +41 +1 +0 +10\/s$/m)
    expect(screen).toMatch(/^total +6 +0 +0 +4 +82 +2 +0$/m)
    expect(screen).toContain('throughput  6.0 jobs/s')
    expect(screen).toContain('7 retries')
    expect(screen).toMatch(/resize-image +attempt 2\/3 +1\.2 s +█{8}░{12} +40 %/)
    expect(screen).toContain('batch       holiday      ██████████░░░░░░░░░░ 10 of 20, 9 completed, 1 failed')
    expect(screen).toContain('next tick in 1.4 s, 3 ticks so far')
    expect(screen).toMatch(/dead letters 2\n +charge-card +card declined \(1 attempt\)/)
    expect(screen).toMatch(/9\.9 s +retried +sync-crm, attempt 1/)
  })

  test.each([
    [80, 24],
    [80, 40],
    [40, 12],
    [20, 3],
    [200, 60],
  ])('fits a terminal of %i columns and %i rows', (columns, rows) => {
    const lines = renderScreen(snapshot(), { columns, rows, color: false }).split('\n')
    expect(lines.length).toBeLessThanOrEqual(rows)
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(columns)
  })

  test('colours change nothing but the colours', () => {
    const plain = renderScreen(snapshot(), shown)
    const coloured = renderScreen(snapshot(), { ...shown, color: true })
    expect(coloured).not.toBe(plain)
    // oxlint-disable-next-line no-control-regex -- escape sequences begin with one
    expect(coloured.replaceAll(/\u001b\[\d+m/g, '')).toBe(plain)
    expect(plain).not.toContain('\u001b')
  })

  test('shows an empty system', () => {
    const nothing = {
      elapsedMs: 0,
      perSecond: [0],
      retries: 0,
      queues: [],
      running: [],
      deadLetters: [],
      happenings: [],
    }
    const screen = renderScreen({ ...nothing, batch: null, schedule: null }, shown)
    expect(screen).toContain('0.0 jobs/s')
  })
})

test('plain lines are complete by themselves', () => {
  expect(countsLine(snapshot())).toBe('  10.0 s  counts   scheduled 6, running 4, completed 82, failed 2')
  const happening = { atMs: 1_234, kind: 'failed', text: 'charge-card, attempt 1: card declined' } as const
  expect(happeningLine(happening)).toBe('   1.2 s  failed   charge-card, attempt 1: card declined')
  expect(renderCounts(snapshot().queues, { columns: 80, color: false }).split('\n')).toHaveLength(4)
})

/** Runs the demo in a process of its own; `interruptAfter` sends Ctrl-C when this text appears. */
function demo(args: readonly string[], interruptAfter?: string) {
  return new Promise<{ code: number | null; output: string; ms: number }>((resolve, reject) => {
    const startMs = performance.now()
    const child = spawn(process.execPath, ['--import', 'tsx', 'examples/demo/main.ts', ...args], { cwd: ROOT })
    const tooLong = setTimeout(() => child.kill('SIGKILL'), DEMO_MAX_MS)
    let output = ''
    const read = (chunk: Buffer): void => {
      const known = interruptAfter !== undefined && output.includes(interruptAfter)
      output += chunk.toString()
      if (interruptAfter !== undefined && !known && output.includes(interruptAfter)) child.kill('SIGINT')
    }
    child.stdout.on('data', read)
    child.stderr.on('data', read)
    child.once('error', reject)
    child.once('close', (code) => {
      clearTimeout(tooLong)
      resolve({ code, output, ms: performance.now() - startMs })
    })
  })
}

function countsOf(some: Partial<Record<JobStatus, number>>): QueueRow['counts'] {
  // Every status is named below.
  return Object.fromEntries(JOB_STATUSES.map((status) => [status, some[status] ?? 0])) as QueueRow['counts']
}

function rightOutcome(): RoundOutcome {
  const ticks = 3
  const queues = Object.entries(EXPECTED.queues).map(([name, ends]) => {
    const extra = name === 'reports' ? ticks : 0
    return { name, limit: '', counts: countsOf({ ...ends, completed: ends.completed + extra }) }
  })
  const deadLetters = EXPECTED.deadLetters.map((text) => {
    const [name = '', error = ''] = text.split(': ')
    return { name, error, attempts: 1 }
  })
  const { retries, duplicates } = EXPECTED
  const batch = { total: 20, completed: 19, failed: 1 }
  return { queues, retries, duplicates, deadLetters, batch, callbackRuns: 1, ticks, tickJobs: ticks }
}

function snapshot(): Snapshot {
  const counts = countsOf({ scheduled: 3, running: 2, completed: 41, failed: 1 })
  const happening = {
    kind: 'retried',
    text: `sync-crm, attempt 1: CRM answered 503 ${'and more '.repeat(20)}`,
  } as const
  return {
    elapsedMs: 10_000,
    queues: [
      { name: 'email', counts, limit: '10/s' },
      { name: 'images', counts, limit: '4 at once' },
    ],
    perSecond: [0, 4, 8, 6, 2],
    retries: 7,
    running: Array.from({ length: 12 }, () => ({
      name: 'resize-image',
      attempt: 2,
      maxAttempts: 3,
      percent: 40,
      ranMs: 1_200,
    })),
    batch: {
      name: 'holiday',
      progress: { total: 20, pending: 10, completed: 9, failed: 1, cancelled: 0, percent: 45, successRate: 0.9 },
    },
    schedule: { name: 'metrics', nextInMs: 1_400, ticks: 3 },
    deadLetters: [
      { name: 'charge-card', error: 'card declined', attempts: 1 },
      { name: 'sync-crm', error: 'CRM answered 503', attempts: 4 },
    ],
    happenings: Array.from({ length: 20 }, (_, index) => ({ ...happening, atMs: 8_000 + index * 100 })),
  }
}
