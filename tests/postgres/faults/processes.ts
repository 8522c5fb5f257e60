// Processes of one test, killed when it ends, and the books they keep.
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeAll } from 'vitest'
import { runDirectory } from '../../support/run-directory.ts'
import type { ProducerSettings, WorkerSettings } from './fixtures/protocol.ts'
import { COMPILE_MAX_MS, compiledFixtures, startProducer, startWorker } from './start-process.ts'
import type { Books, FaultProcess } from './start-process.ts'

export type { FaultProcess } from './start-process.ts'

export interface FaultProcesses {
  worker(settings: Partial<WorkerSettings> & { readonly url: string }): Promise<FaultProcess>
  producer(settings: Partial<ProducerSettings> & { readonly url: string }): Promise<FaultProcess>
  /** What the processes of this test write down. */
  readonly files: Books
}

/** Call it at the top of a test file, or in a function that one calls there. Whatever is still running after a test is killed. */
export function useProcesses(): FaultProcesses {
  let folder = ''
  const running: FaultProcess[] = []
  const fresh = async (): Promise<string> => mkdtempSync(join(await runDirectory(), 'ledger-'))

  beforeAll(async () => {
    await compiledFixtures()
    folder = await fresh()
  }, COMPILE_MAX_MS)
  afterEach(async () => {
    for (const process of running.splice(0)) process.signal('SIGKILL')
    folder = await fresh()
  })

  const files = {
    get ledger() {
      return join(folder, 'ledger')
    },
    get runs() {
      return join(folder, 'runs')
    },
  }
  const keep = (process: FaultProcess): FaultProcess => {
    running.push(process)
    return process
  }
  return {
    files,
    worker: async (settings) => keep(await startWorker(files, settings)),
    producer: async (settings) => keep(await startProducer(files, settings)),
  }
}
