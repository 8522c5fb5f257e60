// Loaded into a process before everything else (`--import`): its clock on the wall is wrong by so many milliseconds, in
// every thread. Timers and the monotonic clock are right, as on a machine whose time was set wrong.
import { AHEAD_VARIABLE } from './clock.ts'
import type { Shifted } from './clock.ts'

const aheadMs = Number(process.env[AHEAD_VARIABLE])
const TrueDate = Date
const shiftedNowMs = (): number => TrueDate.now() + aheadMs

;(globalThis as Shifted).chaosTrueNowMs = () => TrueDate.now() // read by trueNowMs
globalThis.Date = new Proxy(TrueDate, {
  construct: (target, given: unknown[], asked) =>
    // A constructor makes an object.
    Reflect.construct(target, given.length === 0 ? [shiftedNowMs()] : given, asked) as Date,
  apply: () => new TrueDate(shiftedNowMs()).toString(),
  get: (target, key, receiver): unknown => (key === 'now' ? shiftedNowMs : Reflect.get(target, key, receiver)),
})
