// A service turned by hand. It gets a clock whose timers never fire by themselves: each turn fires the one
// it waits for and ends when it waits again. So the kit runs the real maintenance, pass by pass, and a
// service that has nothing to do costs nothing however far the clock moves.
import type { Clock, Timer } from '../runtime/clock.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { Service } from '../runtime/service.ts'

/** A service that never comes to rest is a bug; this many passes are more than any backlog needs. */
const PASSES_MAX = 10_000

interface Armed {
  readonly waitMs: number
  readonly fire: () => void
}

export class Crank {
  readonly #service: Service
  #armed: Armed | undefined
  #onArmed: ((waitMs: number) => void) | undefined
  #tail: Promise<void>

  constructor(runtime: Runtime, create: (runtime: Runtime) => Service) {
    const { clock } = runtime
    const held: Clock = {
      nowMs: () => clock.nowMs(),
      monoMs: () => clock.monoMs(),
      breathe: () => clock.breathe(),
      timer: (waitMs, fire) => this.#arm({ waitMs, fire }),
    }
    this.#service = create({ ...runtime, clock: held })
    this.#tail = this.#service.start()
  }

  /** Passes until the service says it has caught up. Turns never overlap. */
  turn(): Promise<void> {
    this.#tail = this.#tail.then(() => this.#turn())
    return this.#tail
  }

  stop(): Promise<void> {
    return this.#service.stop()
  }

  async #turn(): Promise<void> {
    for (let pass = 0; pass < PASSES_MAX && this.#armed !== undefined; pass++) {
      const { fire } = this.#armed
      this.#armed = undefined
      const rest = new Promise<number>((resolve) => (this.#onArmed = resolve))
      fire()
      if ((await rest) > 0) return
    }
  }

  #arm(armed: Armed): Timer {
    this.#armed = armed
    this.#onArmed?.(armed.waitMs)
    this.#onArmed = undefined
    return {
      cancel: () => {
        if (this.#armed === armed) this.#armed = undefined
      },
    }
  }
}
