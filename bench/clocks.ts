// The clocks of a measurement: time, processor time of the clients and of the server, and the log that the
// server wrote. They start together; the time of them all is when `stop` is called.
import type { Crew } from './crew.ts'
import { nowMs } from './crew.ts'
import type { Database } from './database.ts'
import type { Values } from './scenario.ts'

export interface ClockParts {
  readonly database?: Database | undefined
  readonly crew?: Crew | undefined
  /** Whether this process does some of the measured work; it always does when the workers are in it. */
  readonly isWorkHere: boolean
}

export interface Clocks {
  /** Since the start. */
  elapsedMs(): number
  stop(): void
  /** What stopped clocks say about so many jobs. */
  values(jobs: number): Promise<Values>
}

export async function startClocks({ database, crew, isWorkHere }: ClockParts): Promise<Clocks> {
  const countsHere = isWorkHere || crew?.isLocal === true
  const crewCpuUs = (await crew?.cpuUs()) ?? 0
  const walBytes = await database?.walBytes()
  const serverCpuUs = database?.serverCpuUs()
  const cpu = process.cpuUsage()
  const startMs = nowMs()
  let stopped: { readonly ms: number; readonly cpuUs: number; readonly serverCpuUs: number | undefined } | undefined
  return {
    elapsedMs: () => nowMs() - startMs,
    stop() {
      const ms = nowMs() - startMs
      const { user, system } = process.cpuUsage(cpu)
      stopped = { ms, cpuUs: countsHere ? user + system : 0, serverCpuUs: database?.serverCpuUs() }
    },
    async values(jobs) {
      if (stopped === undefined) throw new Error('the clocks are still running')
      const clientUs = stopped.cpuUs + ((await crew?.cpuUs()) ?? 0) - crewCpuUs
      const serverUs = difference(stopped.serverCpuUs, serverCpuUs)
      const wal = difference(await database?.walBytes(), walBytes)
      return {
        jobs_per_s: jobs / (stopped.ms / 1000),
        cpu_us_per_job: clientUs / jobs,
        ...(serverUs !== undefined && { server_cpu_us_per_job: serverUs / jobs }),
        ...(wal !== undefined && { wal_bytes_per_job: wal / jobs }),
      }
    },
  }
}

function difference(after: number | undefined, before: number | undefined): number | undefined {
  return after === undefined || before === undefined ? undefined : after - before
}
