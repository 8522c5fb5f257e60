// How fast a backlog is worked off by one worker with a handler that does nothing: the cost of the system
// itself. The clock runs from the call that starts the worker to the last completion.
import { startClocks } from '../scenario.ts'
import type { Measurement, Scenario } from '../scenario.ts'
import { fill } from '../system.ts'
import type { OpenSystem } from '../system.ts'

export function drain(concurrency: number): Scenario {
  return {
    name: `drain-${concurrency}`,
    says: `work off a backlog of no-op jobs, concurrency ${concurrency}`,
    jobs: { memory: 200_000, other: 50_000 },
    run: (system, jobs) => measureDrain(system, jobs, concurrency),
  }
}

async function measureDrain(system: OpenSystem, jobs: number, concurrency: number): Promise<Measurement> {
  await fill(system, jobs)
  const { promise, onCompleted } = countdown(jobs, () => stop(jobs))
  const stop = startClocks()
  const worker = await system.work({ concurrency, onCompleted })
  const measurement = await promise
  await worker.stop()
  return measurement
}

/** Reads the clocks in the very call that completes the last job, not some turns of the loop later. */
function countdown<Value>(jobs: number, finish: () => Value): { promise: Promise<Value>; onCompleted: () => void } {
  let left = jobs
  let settle: (value: Value) => void
  const promise = new Promise<Value>((resolve) => {
    settle = resolve
  })
  const onCompleted = (): void => {
    left -= 1
    if (left === 0) settle(finish())
  }
  return { promise, onCompleted }
}
