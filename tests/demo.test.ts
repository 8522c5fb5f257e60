// The demo is what people see first: it must end by itself, be right, find its jobs again, leave no server behind,
// and fit the terminal.
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { chmodSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, describe, expect, test } from 'vitest'
import { earlierLines } from '../examples/demo/earlier.ts'
import { differences, isCutShort } from '../examples/demo/outcome.ts'
import type { RoundOutcome } from '../examples/demo/outcome.ts'
import { countsLine, happeningLine } from '../examples/demo/plain.ts'
import { renderCounts, renderScreen } from '../examples/demo/screen.ts'
import type { QueueRow, Snapshot } from '../examples/demo/watch.ts'
import { EXPECTED } from '../examples/demo/workload.ts'
import { isRunning } from '../src/backends/embedded/processes.ts'
import { readState } from '../src/backends/embedded/state.ts'
import type { ServerState } from '../src/backends/embedded/state.ts'
import { JOB_STATUSES } from '../src/index.ts'
import type { JobStatus } from '../src/index.ts'
import { ROOT } from './tidy/source.ts'

/** Half of it on a machine of its own; the tests share theirs. */
const DEMO_MAX_MS = 60_000
/** Lingering for a second, then a shutdown with its checkpoint. */
const SERVER_GONE_MAX_MS = 8_000
const POLL_MS = 20

const made: string[] = []

afterAll(() => made.forEach((dir) => rmSync(dir, { recursive: true, force: true })))

describe('the demo', { timeout: 3 * DEMO_MAX_MS }, () => {
  // These two side by side: most of a round is waiting.
  test.concurrent('finds its jobs again, goes on with those that Ctrl-C left, and leaves no server behind', async () => {
    const dir = directory()
    const first = await demo(['--once'], dir)
    expect(first.output).toContain(`data in ${join(dir, '.millrace')}`)
    expect(first.output).toContain('there are no jobs of earlier runs')
    expectRightRound(first)

    const stopped = await demo([], dir, 'a round of jobs is enqueued')
    expect(stopped.output).toMatch(/^jobs of earlier runs: .*completed \d{2,3}, failed 3, cancelled 1$/m)
    expect(stopped.output).toMatch(/^their last dead letters\n( {2}\S+: .* \(\d attempts?\)\n){3}/m)
    expectGracefulStop(stopped)
    expect(stopped.server, 'the state file names the server').toBeDefined()
    expect(await untilGone(stopped.server)).toBeLessThan(SERVER_GONE_MAX_MS)

    const second = await demo(['--once'], dir)
    expect(second.output).toMatch(/^not ended: \d+; this run goes on from there$/m)
    expect(second.output, 'nothing is left of three rounds but perhaps a tick').toMatch(
      /^in the store: (?:(?:queued|running|scheduled) 1, )?completed [23]\d\d, failed \d+, cancelled 3$/m,
    )
    expectRightRound(second)
    await untilGone(readState(join(dir, '.millrace', 'state.json')))
  })

  test.concurrent('does the same in memory, and leaves nothing on the disk', async () => {
    const dir = directory()
    expectRightRound(await demo(['--once', '--memory'], dir))
    expectGracefulStop(await demo(['--memory'], dir, 'a round of jobs is enqueued'))
    expect(readdirSync(dir)).toEqual([])
  })

  test('explains itself, and refuses what it does not know', async () => {
    const dir = directory()
    const [help, wrong] = await Promise.all([demo(['--help'], dir), demo(['--onec'], dir)])
    expect(help).toMatchObject({ code: 0, output: expect.stringContaining('--once') as string })
    expect(wrong).toMatchObject({ code: 2, output: expect.stringContaining('--onec') as string })
  })

  test('says what to do when there can be no database', async () => {
    const dir = directory()
    writeFileSync(join(dir, '.millrace'), 'not a directory')
    const { code, output } = await demo(['--once'], dir)
    expect(code).toBe(1)
    expect(output).toContain('npm start -- --memory')
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

test('a round that had no time to end is told from one that ended wrong', () => {
  expect(isCutShort(rightOutcome())).toBe(false)
  const queues = [{ name: 'email', limit: '', counts: countsOf({ queued: 1 }) }]
  expect(isCutShort({ ...rightOutcome(), queues })).toBe(true)
})

describe('what earlier runs left', () => {
  const queues = [{ name: 'email', limit: '', counts: countsOf({ queued: 2, completed: 40, failed: 1 }) }]
  const deadLetters = [{ name: 'sync-crm', error: 'CRM answered 503', attempts: 4 }]

  test('is told by counts, with the last dead letters and what goes on', () => {
    expect(earlierLines({ queues, deadLetters, unfinished: 2, batch: null })).toEqual([
      'jobs of earlier runs: queued 2, completed 40, failed 1',
      'their last dead letters',
      '  sync-crm: CRM answered 503 (4 attempts)',
      'not ended: 2; this run goes on from there',
    ])
  })

  test('is nothing in a new store', () => {
    const nothing = { queues: [], deadLetters: [], unfinished: 0, batch: null }
    expect(earlierLines(nothing)).toEqual(['there are no jobs of earlier runs'])
  })
})

describe('the live table', () => {
  const shown = { columns: 80, rows: 34, color: false }

  test('shows queues, throughput, running jobs, batch, schedule, dead letters and events', () => {
    const screen = renderScreen(snapshot(), shown)
    expect(screen).toMatch(/^Millrace on PostgreSQL, data in \.millrace +10\.0 s · Ctrl-C stops$/m)
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
      store: 'the memory backend',
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

interface DemoRun {
  readonly code: number | null
  readonly output: string
  readonly ms: number
  /** As the state file had it when Ctrl-C was sent. */
  readonly server: ServerState | undefined
}

/** A project to be: anybody may look into it, as into a checkout. */
function directory(): string {
  const dir = mkdtempSync(join(tmpdir(), 'millrace-demo-'))
  chmodSync(dir, 0o755)
  made.push(dir)
  return dir
}

/** Runs the demo in a process of its own; with `interruptAfter` it gets a Ctrl-C when this text has appeared. */
async function demo(args: readonly string[], cwd: string, interruptAfter?: string): Promise<DemoRun> {
  const startMs = performance.now()
  const tsx = createRequire(import.meta.url).resolve('tsx')
  const main = join(ROOT, 'examples', 'demo', 'main.ts')
  const child = spawn(process.execPath, ['--import', tsx, main, ...args], { cwd })
  const tooLong = setTimeout(() => child.kill('SIGKILL'), DEMO_MAX_MS + 5_000)
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()))
  const closed = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  const needsServer = !args.includes('--memory')
  const stateOf = (): ServerState | undefined => readState(join(cwd, '.millrace', 'state.json'))
  let server: ServerState | undefined
  if (interruptAfter !== undefined) {
    const isUp = (): boolean => output.includes(interruptAfter) && (!needsServer || stateOf() !== undefined)
    await until(() => isUp() || hasEnded(child))
    server = stateOf()
    child.kill('SIGINT')
  }
  const code = await closed
  clearTimeout(tooLong)
  return { code, output, server, ms: performance.now() - startMs }
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null
}

async function until(condition: () => boolean): Promise<void> {
  const deadlineMs = performance.now() + DEMO_MAX_MS
  while (!condition() && performance.now() < deadlineMs) await sleep(POLL_MS)
}

/** How long it took until neither the server nor its guardian runs. */
async function untilGone(server: ServerState | undefined): Promise<number> {
  const startMs = performance.now()
  await until(() => server === undefined || !(isRunning(server.postmaster) || isRunning(server.guardian.pid)))
  return performance.now() - startMs
}

function expectGracefulStop({ code, output }: DemoRun): void {
  expect(output).toContain('stopping: running jobs finish')
  // A worker that stops leaves nothing running.
  expect(output).toMatch(/^total +\d+ +\d+ +\d+ +0 /m)
  expect(code).toBe(0)
}

function expectRightRound({ code, output, ms }: DemoRun): void {
  expect(output).toContain('the counts are what the workload implies')
  expect(output).toMatch(/^email +0 +0 +0 +0 +41 +0 +1 /m)
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
    store: 'PostgreSQL, data in .millrace',
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
