// Where the suites of this folder run: a store per test, processes over it that are stopped at its end. Each suite is a
// function of it and runs for every store that lives in a server. Time is real: a test waits for an event, a result or a
// condition, never for a while.
import { createMillrace } from '../../src/index.ts'
import type { AnyJob, Backend, Millrace, MillraceOptions } from '../../src/index.ts'

export interface Place extends AsyncDisposable {
  /** For processes of their own. */
  readonly address: Address
  /** A Millrace with connections of its own, as in a process of its own. */
  process<const Known extends readonly AnyJob[]>(jobs: Known, options?: ProcessOptions<Known>): Promise<Millrace<Known>>
  /** The backend of one process; of another store on the same server, if it is named. */
  backend(other?: string): Backend
}

export interface Address {
  readonly url: string
  /** Beside a PostgreSQL: the store is the hybrid. */
  readonly redis?: string
  readonly prefix?: string
}

/** Answers an empty store. */
export type OpenPlace = () => Promise<Place>

export type ProcessOptions<Known extends readonly AnyJob[]> = Partial<Omit<MillraceOptions<Known>, 'jobs'>>

export function openPlace(address: Address, backend: Place['backend'], close: () => Promise<void>): Place {
  const mills: { stop(options: { readonly deadline: number }): Promise<void> }[] = []
  return {
    address,
    backend,
    async process(jobs, options = {}) {
      const own = options.connections === undefined ? { backend: backend() } : {}
      const create = (all: MillraceOptions<typeof jobs>): Promise<Millrace<typeof jobs>> => createMillrace(all)
      const mill = await create({ jobs, ...own, ...options })
      mills.push(mill)
      return mill
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(mills.map((mill) => mill.stop({ deadline: 0 })))
      await close()
    },
  }
}

/** A thread of Node 20 loads no TypeScript: beats come from the loop, except in processes of their own. */
export function withoutThread(backend: Backend): Backend {
  return { ...backend, capabilities: { ...backend.capabilities, threadLiveness: null } }
}
