// Time that stands still until a test moves it. Timers fire in the order they are due, and whatever they
// start gets its turn before the next one fires. A follower (schedules, delays, retries) is asked for its
// next moment and visited there, so a month without work costs nothing.
import { parseDuration } from '../core/duration.ts'
import type { Duration } from '../core/duration.ts'
import { LIMITS } from '../core/limits.ts'
import { invalidOption } from '../core/names.ts'
import { systemClock } from '../runtime/clock.ts'
import type { Clock, Timer } from '../runtime/clock.ts'

export interface ClockFollower {
  /** The next moment after this one at which something is due; Infinity: none. */
  nextDueMs(afterMs: number): number
  /** Called at each such moment, and once more where the clock comes to rest. */
  onTime(atRest: boolean): Promise<void>
}

interface Waiting {
  readonly dueMs: number
  readonly fire: () => void
}

/** A new year, at midnight UTC: times in failing tests are easy to read. */
const START_MS = Date.UTC(2030, 0, 1)

export class VirtualClock implements Clock {
  /** Wall time minus monotonic time; only setting the clock back changes it. */
  #offsetMs: number
  #monoMs = 0
  /** In the order they were armed, so that of two with the same moment the older one comes first. */
  readonly #waiting = new Set<Waiting>()
  #follower: ClockFollower | undefined

  constructor(start: Date | number = START_MS) {
    this.#offsetMs = momentMs(start, 'start')
  }

  nowMs(): number {
    return this.#offsetMs + this.#monoMs
  }

  monoMs(): number {
    return this.#monoMs
  }

  now(): Date {
    return new Date(this.nowMs())
  }

  timer(delayMs: number, fire: () => void): Timer {
    const waiting = { dueMs: this.#monoMs + Math.max(delayMs, 0), fire }
    this.#waiting.add(waiting)
    return { cancel: () => void this.#waiting.delete(waiting) }
  }

  breathe(): Promise<void> {
    return systemClock.breathe()
  }

  /** Moves time forward and does on the way what falls due: timers, ticks of schedules, delayed jobs. */
  async advance(duration: Duration): Promise<void> {
    await this.#moveTo(this.#monoMs + parseDuration(duration, 'advance', { maxMs: LIMITS.delayMaxMs }))
  }

  /** Forward: the same as advancing to that moment. Back: only the wall clock changes, as when a host corrects its time. */
  async set(moment: Date | number): Promise<void> {
    const ms = momentMs(moment, 'moment')
    if (ms >= this.nowMs()) await this.#moveTo(ms - this.#offsetMs)
    else this.#offsetMs = ms - this.#monoMs
  }

  follow(follower: ClockFollower): void {
    this.#follower = follower
  }

  async #moveTo(targetMs: number): Promise<void> {
    // What was started and not awaited goes first: its timers must not count as late.
    await this.breathe()
    await this.#follower?.onTime(false)
    for (let next = this.#next(targetMs); next !== null; next = this.#next(targetMs)) {
      this.#monoMs = Math.max(this.#monoMs, next.atMs)
      if (next.timer === undefined) {
        await this.#follower?.onTime(false)
      } else {
        this.#waiting.delete(next.timer)
        next.timer.fire()
      }
      await this.breathe()
    }
    this.#monoMs = Math.max(this.#monoMs, targetMs)
    await this.#follower?.onTime(true)
    await this.breathe()
  }

  /** The next stop up to the target. Timers go before the follower, which then sees what they did. */
  #next(targetMs: number): { readonly atMs: number; readonly timer: Waiting | undefined } | null {
    let timer: Waiting | undefined
    for (const waiting of this.#waiting) if (timer === undefined || waiting.dueMs < timer.dueMs) timer = waiting
    const followMs = (this.#follower?.nextDueMs(this.nowMs()) ?? Infinity) - this.#offsetMs
    const atMs = Math.min(timer?.dueMs ?? Infinity, followMs)
    if (atMs > targetMs) return null
    return { atMs, timer: timer !== undefined && timer.dueMs <= followMs ? timer : undefined }
  }
}

function momentMs(moment: Date | number, what: string): number {
  const ms = moment instanceof Date ? moment.getTime() : moment
  if (typeof ms === 'number' && Number.isFinite(ms)) return Math.round(ms)
  throw invalidOption(what, moment, 'a valid Date or milliseconds since 1970')
}
