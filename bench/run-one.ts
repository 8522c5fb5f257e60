// The child of a benchmark: measures the one cell it is sent, replies and exits.
import { SCENARIOS } from './catalogue.ts'
import type { Order, Reply } from './child.ts'
import type { Measurement } from './scenario.ts'
import { openStage } from './stage.ts'

async function measure({ cell, ...servers }: Order): Promise<Measurement> {
  const scenario = SCENARIOS.find(({ name }) => name === cell.scenario)!
  const stage = await openStage({ system: cell.system, backend: cell.backend, scenario, servers })
  const measurement = await scenario.run(stage, cell.jobs)
  await stage.close()
  return measurement
}

function reply(answer: Reply): void {
  // Exit by hand: a client that keeps the process alive must not keep the benchmark waiting.
  process.send!(answer, () => process.exit('error' in answer ? 1 : 0))
}

// Nobody is left to reply to.
process.once('disconnect', () => process.exit(1))
process.once('message', (order: Order) => {
  measure(order).then(
    (measurement) => reply({ measurement }),
    (error: unknown) => reply({ error: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
  )
})
