// The child of a benchmark: measures the one cell it is sent, replies and exits.
import { SCENARIOS, SYSTEMS } from './catalogue.ts'
import type { Cell } from './catalogue.ts'
import type { Reply } from './child.ts'
import type { Measurement } from './scenario.ts'

async function measure({ system, backend, scenario, jobs }: Cell): Promise<Measurement> {
  const open = await (await SYSTEMS[system]!.load()).open(backend)
  const measurement = await SCENARIOS.find(({ name }) => name === scenario)!.run(open, jobs)
  await open.close()
  return measurement
}

function reply(answer: Reply): void {
  // Exit by hand: a client that keeps the process alive must not keep the benchmark waiting.
  process.send!(answer, () => process.exit('error' in answer ? 1 : 0))
}

// Nobody is left to reply to.
process.once('disconnect', () => process.exit(1))
process.once('message', (cell: Cell) => {
  measure(cell).then(
    (measurement) => reply({ measurement }),
    (error: unknown) => reply({ error: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
  )
})
