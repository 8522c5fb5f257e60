// Every store call ends: one that gets no answer in time is STORE_TIMEOUT, which is safe to repeat. A
// decorator, so that no caller can forget it and no backend has to know. Its end is also where calls are timed.
import { bounded } from '../runtime/bounded.ts'
import type { Clock } from '../runtime/clock.ts'
import type { CallWatch } from '../runtime/probe.ts'
import type { Backend } from '../store/ports.ts'
import { wrapBackend } from '../store/wrap.ts'

export function boundedBackend(backend: Backend, clock: Clock, timeoutMs: number, watch?: CallWatch): Backend {
  return wrapBackend(backend, (what, call) => bounded(clock, timeoutMs, what, call(), watch))
}
