// What a scenario is, and the two clocks every one of them reads.
import type { OpenSystem } from './system.ts'

export const UNITS = {
  jobs_per_s: 'jobs/s',
  cpu_us_per_job: 'µs',
  p50_ms: 'ms',
  p99_ms: 'ms',
  bytes_per_job: 'bytes',
} as const

export type Metric = keyof typeof UNITS
export type Measurement = Readonly<Partial<Record<Metric, number>>>

export interface Scenario {
  readonly name: string
  readonly says: string
  /** Unless `--jobs` says otherwise, by backend; `other` for those not named. */
  readonly jobs: { readonly memory: number; readonly other: number }
  /** The most it takes, whatever `--jobs` says; absent: no bound of its own. */
  readonly jobsMax?: number
  run(system: OpenSystem, jobs: number): Promise<Measurement>
}

/** Starts both clocks; the answer stops them. Processor time is that of the whole process, all threads. */
export function startClocks(): (jobs: number) => Measurement {
  const startMs = performance.now()
  const startCpu = process.cpuUsage()
  return (jobs) => {
    const seconds = (performance.now() - startMs) / 1000
    const { user, system } = process.cpuUsage(startCpu)
    return { jobs_per_s: jobs / seconds, cpu_us_per_job: (user + system) / jobs }
  }
}
