// What became of a run: the books of producer and workers against what Postgres says.
import { existsSync, readFileSync } from 'node:fs'
import pg from 'pg'
import { balance, liveJobs } from '../postgres/faults/ledger.ts'
import { until } from '../postgres/faults/until.ts'
import type { Scenario, Struck } from './scenarios.ts'
import type { Stage } from './stage.ts'

export interface Verdict {
  readonly acked: number
  /** Acknowledged, and not completed. */
  readonly lost: number
  /** A result was applied although another run had taken its place, or a run has no row in the audit trail. */
  readonly stale: number
  readonly unexpected: number
  /** Started again, and the first worker was alive and in contact with Postgres. */
  readonly repeated: number
  /** Started again because their worker was robbed of them. */
  readonly rerun: number
  /** From the moment the store was back to the first start of a job that was made after it. */
  readonly firstStartMs: number
  /** Enqueues that failed: their callers were told so. */
  readonly refused: number
  /** From the end of the producer to the last job. */
  readonly drainMs: number
  readonly ok: boolean
}

/** Every lost token is back within heartbeat, grace and reconcile period; then the backlog has to run. */
const DRAIN_MAX_MS = 60_000
const FIRST_START_MAX_MS = 1_000

export async function judge(stage: Stage, struck: Struck, scenario: Scenario): Promise<Verdict> {
  const { firstStartMaxMs = FIRST_START_MAX_MS, minRerun = 0, maxRefused = 0 } = scenario
  await stage.producers.at(-1)!.stop()
  const stoppedMs = performance.now()
  const client = new pg.Client(await urlOf(stage))
  await client.connect()
  try {
    await until(async () => (await liveJobs(client)) === 0, 'everything to drain', { limitMs: DRAIN_MAX_MS })
    const drainMs = Math.round(performance.now() - stoppedMs)
    const { acked, lost, unexpected, notOnce, unexplained } = await balance(client, stage.books)
    const runs = startsIn(stage.books.runs)
    const again = [...runs.values()].filter((starts) => starts.length > 1)
    const repeated = again.filter((starts) => starts.slice(0, -1).some(({ pid }) => !struck.robbed.includes(pid)))
    const fresh = [...runs].flatMap(([id, starts]) => (madeAtMs(id) >= struck.backMs ? starts : []))
    const firstMs = Math.min(...fresh.map(({ atMs }) => atMs))
    const refused = stage.producers.flatMap(({ said }) => said.filter(({ kind }) => kind === 'refused')).length
    const verdict = {
      acked,
      lost: lost.length,
      stale: notOnce.length + unexplained.length,
      unexpected: unexpected.length,
      repeated: repeated.length,
      rerun: again.length - repeated.length,
      firstStartMs: firstMs - struck.backMs,
      refused,
      drainMs,
    }
    const ok =
      lost.length + notOnce.length + unexplained.length + unexpected.length + repeated.length === 0 &&
      verdict.firstStartMs <= firstStartMaxMs &&
      // A fault that interrupted nothing was none, and one that refuses everything is none of ours.
      verdict.rerun >= minRerun &&
      refused <= maxRefused
    return { ...verdict, ok }
  } finally {
    await client.end()
  }
}

async function urlOf(stage: Stage): Promise<string> {
  const [row] = await stage.query<{ name: string }>('select current_database() as name')
  const url = new URL(stage.postgres.url)
  url.pathname = row!.name
  return url.href
}

/** The time in a UUIDv7. */
function madeAtMs(id: string): number {
  return Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16)
}

interface Start {
  readonly pid: number
  readonly atMs: number
}

/** Every start of every job, in order. */
function startsIn(path: string): ReadonlyMap<string, readonly Start[]> {
  const starts = new Map<string, Start[]>()
  if (!existsSync(path)) return starts
  for (const line of readFileSync(path, 'utf8').split('\n')) {
    const [job, pid, atMs] = line.split(' ')
    if (job === undefined || pid === undefined || atMs === undefined) continue
    const of = starts.get(job) ?? []
    starts.set(job, of)
    of.push({ pid: Number(pid), atMs: Number(atMs) })
  }
  return starts
}
