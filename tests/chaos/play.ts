// One run of one scenario: load, fault, load again, drain, verdict.
import type { Scenario } from './scenarios.ts'
import { openStage } from './stage.ts'
import type { ChaosBackend, Servers } from './stage.ts'
import { judge } from './verdict.ts'
import type { Verdict } from './verdict.ts'

export interface PlayOptions {
  readonly backend: ChaosBackend
  readonly goneMs: number
  /** Jobs before and after the fault. */
  readonly jobs: number
}

export async function play(servers: Servers, scenario: Scenario, options: PlayOptions): Promise<Verdict> {
  const { goneMs, jobs } = options
  const stage = await openStage(servers, options.backend)
  try {
    await stage.flow(jobs)
    await stage.flowsThroughRedis()
    const struck = await scenario.strike(stage, { goneMs })
    try {
      await stage.flow(jobs)
      await stage.flowsThroughRedis()
      return await judge(stage, struck, scenario)
    } finally {
      await struck.close?.()
    }
  } finally {
    await stage.close()
  }
}
