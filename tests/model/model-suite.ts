// One random program, two worlds: each backend must show after every command what the model shows.
import fc from 'fast-check'
import { describe, test } from 'vitest'
import type { TestStore } from '../conformance/suite.ts'
import { commands } from './commands.ts'
import { createProgram } from './program.ts'

export interface ModelSuite {
  readonly name: string
  /** A fresh, empty, started store. */
  readonly create: () => Promise<TestStore>
  readonly runs: number
  /** Does the backend follow core/priority.ts start by start, or only keep the bound of the share? */
  readonly exactShare?: boolean
}

const COMMANDS_MAX = 80
const TIMEOUT_MS = 600_000

/** `MODEL_RUNS` asks for more programs, `MODEL_SEED` repeats those of a failure. */
export function modelSuite({ name, create, runs, exactShare = false }: ModelSuite): void {
  const seed = process.env['MODEL_SEED']
  const numRuns = Number(process.env['MODEL_RUNS'] ?? runs)
  describe(`${name} against the model`, () => {
    test(
      `${numRuns} random programs show the same on the store and on the model`,
      async () => {
        const programs = fc.commands([...commands], { maxCommands: COMMANDS_MAX, size: 'max' })
        const property = fc.asyncProperty(programs, async (program) => {
          const { backend, clock, close } = await create()
          try {
            const model = await createProgram({ backend, clock }, exactShare)
            await fc.asyncModelRun(() => ({ model, real: { backend, clock } }), program)
          } finally {
            await close()
          }
        })
        // A failure is reported with its seed, its path and the shortest program found.
        await fc.assert(property, { numRuns, ...(seed !== undefined && { seed: Number(seed) }) })
      },
      TIMEOUT_MS,
    )
  })
}
