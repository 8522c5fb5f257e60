// Calls to Redis as the rules make them: with an end, told to the breaker, and with the refusals of the gate passed on to
// those who flip epochs.
import { bounded } from '../../runtime/bounded.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import type { EpochTag, GateRefusal, Gated, Race } from './ports.ts'

export interface RaceCallsOptions {
  readonly runtime: Runtime
  readonly race: Race
  readonly timeoutMs: number
  readonly onAnswer: (queue: string) => void
  readonly onError: (queue: string, startedMs: number) => void
  readonly onRefused: (queue: string, tag: EpochTag, refusal: GateRefusal) => void
}

export class RaceCalls {
  readonly #options: RaceCallsOptions

  constructor(options: RaceCallsOptions) {
    this.#options = options
  }

  /** Undefined: the gate refused it, and whoever has to know was told. Throws when the outcome is unknown. */
  async gated<Value>(
    queue: string,
    tag: EpochTag,
    call: (race: Race) => Promise<Gated<Value>>,
  ): Promise<Value | undefined> {
    const reply = await this.plain(queue, call)
    if (reply.refused === null) return reply.value
    this.#options.onRefused(queue, tag, reply.refused)
    return undefined
  }

  async plain<Value>(queue: string, call: (race: Race) => Promise<Value>): Promise<Value> {
    const { runtime, race, timeoutMs, onAnswer, onError } = this.#options
    const startedMs = runtime.clock.monoMs()
    try {
      const value = await bounded(runtime.clock, timeoutMs, 'Redis', call(race))
      onAnswer(queue)
      return value
    } catch (error) {
      onError(queue, startedMs)
      throw error
    }
  }
}
