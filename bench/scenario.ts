// What a scenario is, what it plays on and what it answers.
import type { Keeper } from './backends.ts'
import type { Crew, CrewOptions } from './crew.ts'
import type { Database } from './database.ts'
import type { RedisDatabase } from './redis-database.ts'
import type { Link } from './forked-link.ts'
import type { Aim, OpenSystem, Payload } from './system.ts'

export const METRICS = {
  jobs_per_s: { unit: 'jobs/s', better: 'more' },
  unheld_jobs_per_s: { unit: 'jobs/s', better: 'more' },
  usual_jobs_per_s: { unit: 'jobs/s', better: 'more' },
  ratio: { unit: '×', better: 'more' },
  p50_ms: { unit: 'ms', better: 'less' },
  p99_ms: { unit: 'ms', better: 'less' },
  bytes_per_job: { unit: 'bytes', better: 'less' },
  redis_bytes_per_job: { unit: 'bytes', better: 'less' },
  redis_commands_per_job: { unit: 'commands', better: 'less' },
  cpu_us_per_job: { unit: 'µs', better: 'less' },
  server_cpu_us_per_job: { unit: 'µs', better: 'less' },
  redis_cpu_us_per_job: { unit: 'µs', better: 'less' },
  wal_bytes_per_job: { unit: 'bytes', better: 'less' },
  /** Of one core, by the busiest worker process. Who does more in the same time may be busier. */
  worker_cpu_percent: { unit: '%', better: 'neither' },
  /** By the least busy, where there are several. */
  worker_cpu_min_percent: { unit: '%', better: 'neither' },
  backlog_jobs: { unit: 'jobs', better: 'neither' },
  /** What the slow link has added to a round trip. */
  link_ms: { unit: 'ms', better: 'neither' },
} as const satisfies Readonly<Record<string, { readonly unit: string; readonly better: 'more' | 'less' | 'neither' }>>

export type Metric = keyof typeof METRICS
/** What a scenario is about comes before what it costs. */
export const METRIC_NAMES = Object.keys(METRICS) as readonly Metric[]
export type Values = Readonly<Partial<Record<Metric, number>>>

export interface Measurement {
  readonly values: Values
  /** Jobs done when the time was over; absent: all of them. */
  readonly cappedAtJobs?: number
}

export interface Scenario {
  readonly name: string
  readonly says: string
  readonly aim: Aim
  /** Unless `--jobs` says otherwise, by what keeps them; absent: it cannot be played there. */
  readonly jobs: Readonly<Partial<Record<Keeper, number>>>
  /** What a measurement takes with that number of jobs, without what is around every one, and longer who is slow; see estimate.ts. */
  readonly seconds: Readonly<Partial<Record<Keeper | 'slow', number>>>
  /** The only ones it says something about, as SYSTEM or SYSTEM:BACKEND; absent: everybody. */
  readonly only?: readonly string[]
  /** Who is measured unless `--full` or `--scenario` asks for it, named in the same way; absent: everybody. */
  readonly usual?: readonly string[]
  /** It takes turns with this one, as systems do, because the two are compared. */
  readonly beside?: string
  /** Unless `--runs` says otherwise; absent: RUNS_DEFAULT. */
  readonly runs?: number
  /** Of those named, instead: more where one run is short and the promises are about it. */
  readonly runsOf?: Readonly<Record<string, number>>
  /** The most it takes, whatever `--jobs` says; absent: no bound of its own. */
  readonly jobsMax?: number
  /** Of the body of a payload, if it is not the usual one. */
  readonly bodyBytes?: number
  /** The system is set up with nothing but the addresses of its servers. */
  readonly isUnset?: true
  /** Added to every round trip between the system and its servers; absent: they are reached directly. */
  readonly addedMs?: number
  run(stage: Stage, jobs: number): Promise<Measurement>
}

export interface Stage {
  readonly system: OpenSystem
  /** As the scenario asks for. */
  readonly payload: (seq: number) => Payload
  /** Between the system and its servers, if the scenario asks for one. */
  readonly link: Link | undefined
  /** In PostgreSQL, if the backend uses it. */
  readonly database: Database | undefined
  readonly redis: RedisDatabase | undefined
  /** Workers for this place; in processes of their own unless jobs live in memory. */
  crew(options: CrewOptions): Promise<Crew>
  /** The same system in another fresh place. */
  another(): Promise<Stage>
  close(): Promise<void>
}

export const RUNS_DEFAULT = 3

/** How long a measurement goes on at most. What is done by then gives the rate, and the report says so. */
export const CAP_MS = 5_000
