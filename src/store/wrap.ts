// Decorating a backend: every method of every port passes through one function. Deadlines, timing and
// fault injection are added here, once, so that backends stay plain and callers need not remember.
import type { Backend } from './ports.ts'

export const PORTS = [
  'jobs',
  'query',
  'queues',
  'schedules',
  'batches',
  'limits',
  'workers',
  'notes',
] as const satisfies readonly (keyof Backend)[]

export type PortName = (typeof PORTS)[number]

/** Gets the name of the call, for messages and metrics, and the way to make it. */
export type Around = <Value>(what: `${PortName}.${string}`, call: () => Promise<Value>) => Promise<Value>

/** Ports are plain objects of functions; `wakeups`, `start` and `stop` are passed on as they are. */
export function wrapBackend(backend: Backend, around: Around): Backend {
  const wrapped = Object.fromEntries(PORTS.map((port) => [port, wrapPort(port, backend[port], around)]))
  // Same ports, same methods, same types: only the way there is longer.
  return { ...backend, ...(wrapped as Pick<Backend, PortName>) }
}

function wrapPort(name: PortName, port: object, around: Around): object {
  const methods = Object.entries(port as Record<string, (...args: readonly unknown[]) => Promise<unknown>>)
  return Object.fromEntries(
    methods.map(([method, call]) => {
      const what = `${name}.${method}` as const
      return [method, (...args: readonly unknown[]) => around(what, () => call(...args))]
    }),
  )
}
