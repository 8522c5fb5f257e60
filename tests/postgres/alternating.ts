// Several backends on one schema behind the face of one, each call made by the next of them: whatever a backend
// remembers by itself instead of asking the database shows. Only the claims of a worker stay where it is, since a
// worker is one process.
import type { WorkerId } from '../../src/core/job.ts'
import type { Backend } from '../../src/store/ports.ts'
import { PORTS } from '../../src/store/wrap.ts'
import type { PortName } from '../../src/store/wrap.ts'

type Method = (...args: readonly unknown[]) => Promise<unknown>

/** Calls that belong to one process, and the worker they are about. */
const WORKER_OF: Readonly<Record<string, (argument: unknown) => WorkerId>> = {
  'jobs.claim': (request) => (request as { readonly worker: WorkerId }).worker, // a ClaimRequest
  'jobs.holdings': (worker) => worker as WorkerId, // its first parameter
  'workers.retire': (worker) => worker as WorkerId, // its only parameter
}

/** `untilListening` resolves when the connections for hints are open, which takes a moment after the first listener. */
export function alternating(backends: readonly [Backend, ...Backend[]], untilListening: () => Promise<void>): Backend {
  const homes = new Map<WorkerId, Backend>()
  /** Hints are lost on those who do not listen yet: the calls of a test that listens wait until all do. */
  let ready: Promise<void> | undefined
  let turn = 0
  const next = (): Backend => backends[turn++ % backends.length]!

  function homeOf(worker: WorkerId): Backend {
    const home = homes.get(worker) ?? next()
    homes.set(worker, home)
    return home
  }

  async function everybodyListens(): Promise<void> {
    for (const backend of backends) backend.wakeups.listen(['config'], () => undefined)
    await untilListening()
  }

  function port(name: PortName): object {
    const methods = Object.keys(backends[0][name]).map((method) => {
      const workerOf = WORKER_OF[`${name}.${method}`]
      const call: Method = async (...args) => {
        const backend = workerOf === undefined ? next() : homeOf(workerOf(args[0]))
        if (ready !== undefined) await ready
        return await (backend[name] as unknown as Record<string, Method>)[method]!(...args) // a method by its own name
      }
      return [method, call] as const
    })
    return Object.fromEntries(methods)
  }

  const ports = Object.fromEntries(PORTS.map((name) => [name, port(name)]))
  return {
    // Same ports, same methods, same types: only who answers differs.
    ...(ports as unknown as Pick<Backend, PortName>),
    wakeups: {
      listen(topics, onHint) {
        const backend = next()
        let isStopped = false
        let stop: (() => void) | undefined
        ready = (ready ?? everybodyListens()).then(() => {
          if (!isStopped) stop = backend.wakeups.listen(topics, onHint)
        })
        return () => {
          isStopped = true
          stop?.()
        }
      },
    },
    capabilities: backends[0].capabilities,
    async start() {
      await Promise.all(backends.map((backend) => backend.start()))
    },
    async stop() {
      await Promise.all(backends.map((backend) => backend.stop()))
    },
  }
}
