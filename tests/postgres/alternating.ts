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

/** `untilListening` resolves when so many of them hear each other: a hint is lost on those who do not listen yet. */
export function alternating(
  backends: readonly [Backend, ...Backend[]],
  untilListening: (count: number) => Promise<void>,
): Backend {
  const homes = new Map<WorkerId, Backend>()
  const listening = new Set<Backend>()
  let ready: Promise<void> | undefined
  let turn = 0
  const next = (): Backend => backends[turn++ % backends.length]!

  function homeOf(worker: WorkerId): Backend {
    const home = homes.get(worker) ?? next()
    homes.set(worker, home)
    return home
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
        if (!listening.has(backend)) {
          listening.add(backend)
          // Stays when the others go, so that the count holds.
          backend.wakeups.listen(['config'], () => undefined)
          const count = listening.size
          ready = (ready ?? Promise.resolve()).then(() => untilListening(count))
        }
        return backend.wakeups.listen(topics, onHint)
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
