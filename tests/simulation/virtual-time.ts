// Virtual time: a heap of events by (time, random tie-break). One step pops an event, runs it and lets every
// promise it touched settle; no real time passes, and the same seed gives the same order.
import type { Random } from './random.ts'

interface Event {
  readonly atMs: number
  readonly tie: number
  readonly no: number
  readonly fire: () => void
  cancelled: boolean
}

export class VirtualTime {
  nowMs = 0
  steps = 0
  readonly #random: Random
  readonly #heap: Event[] = []
  #lastNo = 0

  constructor(random: Random) {
    this.#random = random
  }

  at(delayMs: number, fire: () => void): { readonly cancel: () => void } {
    const event = {
      atMs: this.nowMs + Math.max(delayMs, 0),
      tie: this.#random.next(),
      no: ++this.#lastNo,
      fire,
      cancelled: false,
    }
    this.#push(event)
    return {
      cancel: () => {
        event.cancelled = true
      },
    }
  }

  /** False: nothing is left to happen. */
  async step(): Promise<boolean> {
    for (;;) {
      const event = this.#pop()
      if (event === undefined) return false
      if (event.cancelled) continue
      this.nowMs = Math.max(this.nowMs, event.atMs)
      this.steps += 1
      event.fire()
      await new Promise(turnOver)
      return true
    }
  }

  #push(event: Event): void {
    const heap = this.#heap
    let index = heap.push(event) - 1
    while (index > 0) {
      const parent = (index - 1) >> 1
      if (!before(event, heap[parent]!)) break
      heap[index] = heap[parent]!
      index = parent
    }
    heap[index] = event
  }

  #pop(): Event | undefined {
    const heap = this.#heap
    const first = heap[0]
    const last = heap.pop()
    if (first === undefined || last === undefined || first === last) return first
    let index = 0
    for (;;) {
      let child = 2 * index + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && before(heap[child + 1]!, heap[child]!)) child += 1
      if (!before(heap[child]!, last)) break
      heap[index] = heap[child]!
      index = child
    }
    heap[index] = last
    return first
  }
}

// The plain one: `node:timers/promises` looks at options and signals, which a step every few microseconds pays for.
function turnOver(resolve: (value: void) => void): void {
  setImmediate(resolve)
}

function before(one: Event, other: Event): boolean {
  if (one.atMs !== other.atMs) return one.atMs < other.atMs
  return one.tie !== other.tie ? one.tie < other.tie : one.no < other.no
}
