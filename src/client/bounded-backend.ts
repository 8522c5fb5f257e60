// Every store call of the client ends: one that gets no answer in time is STORE_TIMEOUT, which is safe to
// repeat. A decorator, so that no caller can forget it and no backend has to know.
import { bounded } from '../runtime/bounded.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Backend } from '../store/ports.ts'

export function boundedBackend(backend: Backend, clock: Clock, timeoutMs: number): Backend {
  const port = <Port extends object>(name: string, target: Port): Port => boundedPort(name, target, clock, timeoutMs)
  return {
    jobs: port('jobs', backend.jobs),
    query: port('query', backend.query),
    queues: port('queues', backend.queues),
    schedules: port('schedules', backend.schedules),
    batches: port('batches', backend.batches),
    limits: port('limits', backend.limits),
    workers: port('workers', backend.workers),
    notes: port('notes', backend.notes),
    wakeups: backend.wakeups,
    capabilities: backend.capabilities,
    start: () => backend.start(),
    stop: () => backend.stop(),
  }
}

/** All methods of these ports answer with a promise; a proxy wraps them without naming each. */
function boundedPort<Port extends object>(name: string, target: Port, clock: Clock, timeoutMs: number): Port {
  const wrapped = new Map<PropertyKey, unknown>()
  return new Proxy(target, {
    get(_, key) {
      const known = wrapped.get(key)
      if (known !== undefined) return known
      const member: unknown = Reflect.get(target, key, target)
      if (typeof member !== 'function') return member
      const call = (...args: readonly unknown[]): Promise<unknown> =>
        bounded(clock, timeoutMs, `${name}.${String(key)}`, Promise.resolve(Reflect.apply(member, target, args)))
      wrapped.set(key, call)
      return call
    },
  })
}
