// Hints between processes. The store rings listeners of this process at once, and tells the other processes with one
// NOTIFY. Commits that notify wait for each other in PostgreSQL, each for its flush, so a hint travels with a commit only once in
// a window; what follows goes by itself, which nobody flushes: a millisecond after the one before, and while a topic rings
// often, as one at the end of a window. Everything here may be lost: a poll stands behind it.
// Who awaits the end of a job says so (`watch`), and only ends that somebody watches are told.
import type { Clock, Timer } from '../../runtime/clock.ts'
import type { Topic, Wakeups } from '../../store/wakeups.ts'
import { isAbsent } from './row.ts'

const WINDOW_MS = 5
/** Between two hints by themselves. */
const GAP_MS = 1
/** In a window. From there on they are merged: hints by themselves cost 100 single enqueues in flight some 5 % of their rate. */
const MANY_RINGS = 4
/** Hints by themselves that are under way: what rings meanwhile is merged. Several, since one may be on a link that is dead. */
const SENDS_MAX = 4
/** NOTIFY takes at most 8000 bytes. */
const PAYLOAD_MAX = 7_000
const WATCH_MS = 60_000
const WATCHES_MAX = 50_000

/** Of one topic: when it was last told, how often it rings, and what follows at the end of its window. */
interface Window {
  toldMs: number
  sinceMs: number
  /** Since then. */
  rings: number
  /** It rings often: over the last whole window, or already within this one. */
  isBusy: boolean
  timer: Timer | undefined
}

export interface DoorbellParts {
  readonly clock: Clock
  /** This process, as the first line of every payload: it does not hear itself. */
  readonly self: string
  /** Sends one payload to all processes; bounded in time. */
  readonly send: (payload: string) => Promise<void>
  /** The first listener came, or the last one went. */
  readonly onListeners: (some: boolean) => void
}

export class Doorbell implements Wakeups {
  readonly #parts: DoorbellParts
  readonly #listeners = new Map<string, Set<(topic: Topic) => void>>()
  readonly #windows = new Map<string, Window>()
  /** Jobs whose end somebody in another process awaits, and until when that is believed. */
  readonly #watched = new Map<string, number>()
  #finishedListeners = 0
  readonly #outbox = new Set<string>()
  #isFlushDue = false
  readonly #sends = new Set<Promise<void>>()

  constructor(parts: DoorbellParts) {
    this.#parts = parts
  }

  listen(topics: readonly Topic[], onHint: (topic: Topic) => void): () => void {
    const wasEmpty = this.#listeners.size === 0
    for (const topic of topics) {
      const listeners = this.#listeners.get(topic)
      if (listeners === undefined) this.#listeners.set(topic, new Set([onHint]))
      else listeners.add(onHint)
      if (!topic.startsWith('finished:')) continue
      if (listeners === undefined) this.#finishedListeners += 1
      this.#post(`watch:${topic.slice('finished:'.length)}`)
    }
    if (wasEmpty && this.#listeners.size > 0) this.#parts.onListeners(true)
    return () => {
      for (const topic of topics) {
        const listeners = this.#listeners.get(topic)
        if (listeners?.delete(onHint) !== true || listeners.size > 0) continue
        this.#listeners.delete(topic)
        if (topic.startsWith('finished:')) this.#finishedListeners -= 1
      }
      if (this.#listeners.size === 0) this.#parts.onListeners(false)
    }
  }

  /** Does anybody, here or elsewhere, await the end of a job? Without, no topic is built for each of them. */
  get hasWatchers(): boolean {
    return this.#watched.size > 0 || this.#finishedListeners > 0
  }

  /**
   * A payload for the statement that is about to be sent, so that its commit carries the hint and no second statement
   * is needed: for topics that have been quiet. Null: nothing to say, `ring` after the commit does the rest.
   */
  sayWith(topics: readonly string[]): { readonly topics: readonly string[]; readonly payload: string } | null {
    const nowMs = this.#parts.clock.monoMs()
    const quiet = topics.filter((topic) => this.#isQuiet(topic, nowMs))
    if (quiet.length === 0 || quiet.join('\n').length > PAYLOAD_MAX) return null
    for (const topic of quiet) this.#windows.set(topic, newWindow(nowMs))
    return { topics: quiet, payload: `${this.#parts.self}\n${quiet.join('\n')}` }
  }

  /** After a commit: rings here at once and tells the others. */
  ring(topic: string): void {
    this.#ringHere(topic)
    if (topic.startsWith('finished:')) {
      if (this.#watched.delete(topic.slice('finished:'.length))) this.#post(topic)
      return
    }
    if (topic.startsWith('ready:') || topic === 'scheduled') this.#ringLater(topic)
    else this.#post(topic)
  }

  /** After a commit that carried what `sayWith` gave: the others know, this process does not yet. */
  ringHere(topic: string): void {
    this.#ringHere(topic)
  }

  /** For a process that is about to end: what has rung goes now. Resolves when it was sent; what rings from now on may be lost. */
  async finish(): Promise<void> {
    for (const [topic, window] of this.#windows) {
      if (window.timer === undefined) continue
      window.timer.cancel()
      window.timer = undefined
      this.#outbox.add(topic)
    }
    while (this.#outbox.size > 0) this.#send()
    await Promise.all(this.#sends)
  }

  /** Lines of a ring list, as SQL collects them. */
  ringAll(lines: string | null | undefined): void {
    if (isAbsent(lines)) return
    for (const topic of lines.split('\n')) if (topic !== '') this.ring(topic)
  }

  /** From another process. */
  heard(payload: string): void {
    for (const topic of payload.split('\n')) {
      if (topic.startsWith('watch:')) this.#watch(topic.slice('watch:'.length))
      else this.#ringHere(topic)
    }
  }

  /** A connection was lost and is back: whatever was said meanwhile was not heard. */
  ringEverything(): void {
    for (const topic of this.#listeners.keys()) this.#ringHere(topic)
  }

  close(): void {
    for (const { timer } of this.#windows.values()) timer?.cancel()
    this.#windows.clear()
    this.#outbox.clear()
    this.#listeners.clear()
    this.#finishedListeners = 0
    this.#watched.clear()
  }

  #ringHere(topic: string): void {
    const listeners = this.#listeners.get(topic)
    if (listeners === undefined) return
    for (const listener of listeners) {
      try {
        listener(topic as Topic) // listeners are kept by the topic they asked for
      } catch {
        // The write took effect; a listener that throws hurts nobody.
        continue
      }
    }
  }

  #watch(id: string): void {
    const nowMs = this.#parts.clock.monoMs()
    this.#watched.delete(id)
    this.#watched.set(id, nowMs + WATCH_MS)
    for (const [oldest, untilMs] of this.#watched) {
      if (untilMs > nowMs && this.#watched.size <= WATCHES_MAX) break
      this.#watched.delete(oldest)
    }
  }

  #isQuiet(topic: string, nowMs: number): boolean {
    const window = this.#windows.get(topic)
    return window === undefined || (window.timer === undefined && nowMs - window.toldMs >= WINDOW_MS)
  }

  #ringLater(topic: string): void {
    const nowMs = this.#parts.clock.monoMs()
    const window = this.#windows.get(topic)
    if (window === undefined) {
      this.#windows.set(topic, newWindow(nowMs))
      this.#post(topic)
      return
    }
    count(window, nowMs)
    if (window.timer !== undefined) return
    const tell = (): void => {
      window.timer = undefined
      window.toldMs = this.#parts.clock.monoMs()
      this.#post(topic)
    }
    const waitMs = window.toldMs + (window.isBusy ? WINDOW_MS : GAP_MS) - nowMs
    if (waitMs <= 0) tell()
    else window.timer = this.#parts.clock.timer(Math.max(waitMs, 1), tell)
  }

  /** Topics of one turn travel together. */
  #post(topic: string): void {
    this.#outbox.add(topic)
    if (this.#isFlushDue || this.#sends.size >= SENDS_MAX) return
    this.#isFlushDue = true
    queueMicrotask(() => {
      this.#isFlushDue = false
      this.#flush()
    })
  }

  #flush(): void {
    while (this.#outbox.size > 0 && this.#sends.size < SENDS_MAX) this.#send()
  }

  /** As much as one NOTIFY takes. */
  #send(): void {
    let payload = ''
    for (const topic of this.#outbox) {
      if (payload !== '' && payload.length + topic.length >= PAYLOAD_MAX) break
      payload += payload === '' ? topic : `\n${topic}`
      this.#outbox.delete(topic)
    }
    const over = (): void => {
      this.#sends.delete(send)
      this.#flush()
    }
    const send = this.#parts.send(payload).then(over, over)
    this.#sends.add(send)
  }
}

function newWindow(nowMs: number): Window {
  return { toldMs: nowMs, sinceMs: nowMs, rings: 0, isBusy: false, timer: undefined }
}

function count(window: Window, nowMs: number): void {
  window.rings += 1
  const forMs = nowMs - window.sinceMs
  if (window.rings * WINDOW_MS >= MANY_RINGS * Math.max(forMs, WINDOW_MS)) window.isBusy = true
  else if (forMs >= WINDOW_MS) window.isBusy = false
  if (forMs < WINDOW_MS) return
  window.sinceMs = nowMs
  window.rings = 0
}
