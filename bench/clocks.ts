// The clocks of a measurement: time, processor time of the clients and of the servers, the log that PostgreSQL wrote
// and the commands that Redis was sent. They start together; the time of them all is when `stop` is called.
import type { Crew } from './crew.ts'
import { nowMs } from './crew.ts'
import type { Stage, Values } from './scenario.ts'

export interface ClockParts {
  readonly stage: Pick<Stage, 'database' | 'redis'>
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

export async function startClocks({ stage: { database, redis }, crew, isWorkHere }: ClockParts): Promise<Clocks> {
  const countsHere = isWorkHere || crew?.isLocal === true
  const crewCpuUs = (await crew?.cpuUs()) ?? []
  const walBytes = await database?.walBytes()
  const commands = await redis?.commands()
  const cpuOfServers = (): ServerCpu => ({ postgres: database?.serverCpuUs(), redis: redis?.serverCpuUs() })
  const serverCpu = cpuOfServers()
  const cpu = process.cpuUsage()
  const startMs = nowMs()
  let stopped: Stopped | undefined
  return {
    elapsedMs: () => nowMs() - startMs,
    stop() {
      const ms = nowMs() - startMs
      const { user, system } = process.cpuUsage(cpu)
      stopped = { ms, cpuUs: countsHere ? user + system : 0, crewCpuUs: crew?.cpuUs(), serverCpu: cpuOfServers() }
    },
    async values(jobs) {
      if (stopped === undefined) throw new Error('the clocks are still running')
      const { ms, cpuUs } = stopped
      const workersUs = ((await stopped.crewCpuUs) ?? []).map((us, index) => us - (crewCpuUs[index] ?? 0))
      const clientUs = workersUs.reduce((sum, us) => sum + us, cpuUs)
      const postgresUs = difference(stopped.serverCpu.postgres, serverCpu.postgres)
      const redisUs = difference(stopped.serverCpu.redis, serverCpu.redis)
      const sent = difference(await redis?.commands(), commands)
      const wal = difference(await database?.walBytes(), walBytes)
      return {
        jobs_per_s: jobs / (ms / 1000),
        cpu_us_per_job: clientUs / jobs,
        ...((postgresUs ?? redisUs) !== undefined && {
          server_cpu_us_per_job: ((postgresUs ?? 0) + (redisUs ?? 0)) / jobs,
        }),
        ...(redisUs !== undefined && { redis_cpu_us_per_job: redisUs / jobs }),
        ...(sent !== undefined && { redis_commands_per_job: sent / jobs }),
        ...(wal !== undefined && { wal_bytes_per_job: wal / jobs }),
        ...workerShares(crew?.isLocal ? [cpuUs] : workersUs, ms),
      }
    },
  }
}

interface Stopped {
  readonly ms: number
  /** Of this process, if it counts. */
  readonly cpuUs: number
  readonly crewCpuUs: Promise<readonly number[]> | undefined
  readonly serverCpu: ServerCpu
}

/** What part of one core each worker process used. */
export function workerShares(workersUs: readonly number[], ms: number): Values {
  if (workersUs.length === 0) return {}
  const percents = workersUs.map((us) => us / (ms * 10))
  return {
    worker_cpu_percent: Math.max(...percents),
    ...(percents.length > 1 && { worker_cpu_min_percent: Math.min(...percents) }),
  }
}

/** In microseconds; undefined where there is no such server, or no telling. */
interface ServerCpu {
  readonly postgres: number | undefined
  readonly redis: number | undefined
}

function difference(after: number | undefined, before: number | undefined): number | undefined {
  return after === undefined || before === undefined ? undefined : after - before
}
