// What a process takes: memory, time of its processor, and how late its loop turns.
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { Clock } from './clock.ts'

export interface ProcessReading {
  readonly rssBytes: number
  /** Of one processor, since the reading before; a process of several threads may have more than 100. */
  readonly cpuPercent: number
  /** The latest turn of the loop since the reading before. */
  readonly loopLagMs: number
}

export interface ProcessMeter {
  read(): ProcessReading
  stop(): void
}

const RESOLUTION_MS = 10

export function startProcessMeter(clock: Clock): ProcessMeter {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  delay.enable()
  let lastMs = clock.monoMs()
  let lastCpu = process.cpuUsage()
  return {
    read() {
      const nowMs = clock.monoMs()
      const cpu = process.cpuUsage()
      const usedMs = (cpu.user - lastCpu.user + cpu.system - lastCpu.system) / 1_000
      const cpuPercent = nowMs > lastMs ? Math.round((usedMs / (nowMs - lastMs)) * 1_000) / 10 : 0
      // Its resolution is part of what it measures.
      const lagMs = delay.count === 0 ? 0 : delay.max / 1_000_000 - RESOLUTION_MS
      delay.reset()
      lastMs = nowMs
      lastCpu = cpu
      return { rssBytes: process.memoryUsage.rss(), cpuPercent, loopLagMs: Math.max(0, Math.round(lagMs * 10) / 10) }
    },
    stop: () => void delay.disable(),
  }
}
