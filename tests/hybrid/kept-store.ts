// PostgreSQL under a hybrid that every test of a file makes anew: its connections are kept, because the first calls of one take
// longer than most tests. What a test has registered signs off at its end, since every worker has a connection of its own.
import { postgresWithLedger } from '../../src/backends/postgres/backend.ts'
import type { PostgresOptions } from '../../src/backends/postgres/backend.ts'
import type { Ledger } from '../../src/backends/hybrid/ports.ts'
import type { WorkerId } from '../../src/core/job.ts'
import type { Backend } from '../../src/store/ports.ts'

export interface StoreAndLedger {
  readonly store: Backend
  readonly ledger: Ledger
}

export interface KeptStore {
  /** For one test; the options of the first are those of all. */
  open(options: PostgresOptions): StoreAndLedger
  close(): Promise<void>
}

/** For one test alone. */
export function storeOf(options: PostgresOptions): StoreAndLedger {
  const { backend: store, ledger } = postgresWithLedger(options)
  return { store, ledger }
}

export function keepStore(): KeptStore {
  let kept: StoreAndLedger | undefined
  let isStarted = false

  return {
    open(options) {
      const { store, ledger } = (kept ??= storeOf(options))
      const workers = new Set<WorkerId>()
      let isStopped = false
      return {
        store: {
          ...store,
          async start() {
            if (!isStarted) await store.start()
            isStarted = true
          },
          async stop() {
            if (isStopped) return
            isStopped = true
            for (const id of workers) await store.workers.retire(id)
          },
        },
        ledger: {
          ...ledger,
          async register(worker) {
            workers.add(worker.id)
            await ledger.register(worker)
          },
        },
      }
    },
    async close() {
      await kept?.store.stop()
    },
  }
}
