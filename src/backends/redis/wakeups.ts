// Hints over one subscriber connection. Scripts ring after their write took effect, and only where it is worth the trip:
// `ready:q` when somebody has said that he waits (`{q}:parked`: a claim that came back short, or a listener here), the
// ends of jobs when somebody awaits any (`watchers`; a channel of their own, so that others do not hear every job end).
// Everything here may be lost: a poll stands behind every listener.
import type { Clock, Timer } from '../../runtime/clock.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { Topic, Wakeups } from '../../store/wakeups.ts'
import type { RedisKeys } from './keys.ts'
import type { RedisLink } from './link.ts'

export interface WakeupParts {
  readonly link: RedisLink
  readonly keys: RedisKeys
  readonly clock: Clock
  readonly logger: Logger
}

/** As long as a claim that came back short parks its queue. */
export const PARKED_MS = 1_500
/** A listener that is rung parks its queue again, but no more often than this. */
const PARK_EVERY_MS = 50
const WATCHERS_MS = 10_000
const RENEW_MS = 3_000
/** Whoever awaits one job after another must not subscribe for each of them. */
const LINGER_MS = 10_000

export class RedisWakeups implements Wakeups {
  readonly #parts: WakeupParts
  readonly #listeners = new Map<string, Set<(topic: Topic) => void>>()
  readonly #parked = new Map<string, { sinceMs: number; timer: Timer | undefined }>()
  readonly #ends: Ends
  #isOpen = false
  #unsubscribe: (() => void) | undefined

  constructor(parts: WakeupParts) {
    this.#parts = parts
    this.#ends = new Ends(parts, {
      // Ids alone: there may be many of them.
      onMessage: (message) => this.#heard(message.replace(/^/gm, END)),
      onBack: () => this.#ringAll(isEnd),
      isAwaited: () => [...this.#listeners.keys()].some(isEnd),
    })
  }

  /** Once the link is connected. Fails where the server does not let us listen or ring. */
  async start(): Promise<void> {
    const { link, keys } = this.#parts
    this.#isOpen = true
    this.#unsubscribe = await link.subscribe(
      keys.bell,
      (message) => this.#heard(message),
      () => this.#onBack(),
    )
    // A script that may not ring would stop after its writes: better to learn it here.
    for (const channel of [keys.bell, keys.ends, keys.hands('')]) await link.command('PUBLISH', channel, '')
    for (const topic of this.#listeners.keys()) this.#attend(topic)
  }

  close(): void {
    this.#isOpen = false
    this.#unsubscribe?.()
    this.#ends.close()
    for (const { timer } of this.#parked.values()) timer?.cancel()
    this.#parked.clear()
    this.#listeners.clear()
  }

  listen(topics: readonly Topic[], onHint: (topic: Topic) => void): () => void {
    for (const topic of topics) {
      const listeners = this.#listeners.get(topic)
      if (listeners === undefined) this.#listeners.set(topic, new Set([onHint]))
      else listeners.add(onHint)
      this.#attend(topic)
    }
    return () => {
      for (const topic of topics) {
        const listeners = this.#listeners.get(topic)
        if (listeners?.delete(onHint) !== true || listeners.size > 0) continue
        this.#listeners.delete(topic)
        this.#parked.get(topic)?.timer?.cancel()
        this.#parked.delete(topic)
      }
    }
  }

  /** Tells the store that somebody listens, where it asks. */
  #attend(topic: string): void {
    if (!this.#isOpen) return
    if (isEnd(topic)) this.#ends.await()
    else if (topic.startsWith(READY)) this.#park(topic)
  }

  #heard(message: string): void {
    for (const topic of message.split('\n')) {
      if (!this.#listeners.has(topic)) continue
      // First who waits for it: the call that follows says by itself that it found nothing.
      this.#ring(topic)
      if (topic.startsWith(READY)) this.#parkAgain(topic)
    }
  }

  /** Whatever was said meanwhile was not heard. */
  #onBack(): void {
    for (const topic of this.#listeners.keys()) if (topic.startsWith(READY)) this.#park(topic)
    this.#ringAll((topic) => !isEnd(topic))
  }

  #ringAll(which: (topic: string) => boolean): void {
    for (const topic of [...this.#listeners.keys()].filter(which)) this.#ring(topic)
  }

  #ring(topic: string): void {
    for (const listener of this.#listeners.get(topic) ?? []) {
      try {
        listener(topic as Topic) // listeners are kept by the topic they asked for
      } catch {
        // The write took effect; a listener that throws hurts nobody.
        continue
      }
    }
  }

  #parkAgain(topic: string): void {
    const { clock } = this.#parts
    const nowMs = clock.monoMs()
    const before = this.#parked.get(topic)
    if (before?.timer !== undefined) return
    const waitMs = before === undefined ? 0 : before.sinceMs + PARK_EVERY_MS - nowMs
    const again = (): void => {
      this.#parked.set(topic, { sinceMs: clock.monoMs(), timer: undefined })
      this.#park(topic)
    }
    if (waitMs <= 0) again()
    else this.#parked.set(topic, { sinceMs: nowMs, timer: clock.timer(waitMs, again) })
  }

  #park(topic: string): void {
    const { link, keys, logger } = this.#parts
    const key = keys.queue(topic.slice(READY.length), 'parked')
    // A claim that stands there says more than that somebody waits (lua/_hand-over.lua).
    link.command('SET', key, '1', 'PX', PARKED_MS, 'NX').catch((error: unknown) => {
      logger.debug({ error }, 'a queue could not be parked: its jobs are found by polling')
    })
  }
}

const READY = 'ready:'
const END = 'finished:'

function isEnd(topic: string): boolean {
  return topic.startsWith(END)
}

interface EndParts {
  readonly onMessage: (message: string) => void
  /** Ends may have been missed. */
  readonly onBack: () => void
  readonly isAwaited: () => boolean
}

/** The channel of ends: subscribed while somebody awaits one, and a little longer. */
class Ends {
  readonly #parts: WakeupParts
  readonly #own: EndParts
  #state: 'off' | 'opening' | 'on' = 'off'
  #saidMs = -Infinity
  #wantedMs = -Infinity
  #timer: Timer | undefined
  #unsubscribe: (() => void) | undefined

  constructor(parts: WakeupParts, own: EndParts) {
    this.#parts = parts
    this.#own = own
  }

  await(): void {
    const nowMs = this.#parts.clock.monoMs()
    this.#wantedMs = nowMs
    if (this.#state === 'off') void this.#open()
    else if (this.#state === 'on' && nowMs - this.#saidMs > RENEW_MS) void this.#say()
  }

  close(): void {
    this.#timer?.cancel()
    this.#unsubscribe?.()
    this.#unsubscribe = undefined
    this.#state = 'off'
  }

  async #open(): Promise<void> {
    const { link, keys, logger } = this.#parts
    this.#state = 'opening'
    try {
      const unsubscribe = await link.subscribe(keys.ends, this.#own.onMessage, this.#own.onBack)
      // It was closed meanwhile.
      if ((this.#state as string) === 'off') return unsubscribe()
      this.#unsubscribe = unsubscribe
      this.#state = 'on'
      await this.#say()
      // Jobs that ended before the store knew that anybody waits.
      this.#own.onBack()
      this.#renewLater()
    } catch (error) {
      this.#state = 'off'
      logger.debug({ error }, 'the ends of jobs cannot be heard now: they are found by polling')
    }
  }

  async #say(): Promise<void> {
    const { link, keys, clock, logger } = this.#parts
    this.#saidMs = clock.monoMs()
    try {
      await link.command('SET', keys.watchers, '1', 'PX', WATCHERS_MS)
    } catch (error) {
      logger.debug({ error }, 'a hint may be lost: the store could not be told that somebody waits')
    }
  }

  #renewLater(): void {
    const { clock } = this.#parts
    this.#timer = clock.timer(RENEW_MS, () => {
      if (this.#own.isAwaited()) {
        this.#wantedMs = clock.monoMs()
        void this.#say()
      } else if (clock.monoMs() - this.#wantedMs > LINGER_MS) {
        this.close()
        return
      }
      this.#renewLater()
    })
  }
}
