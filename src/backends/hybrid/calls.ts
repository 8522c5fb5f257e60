// Calls to Redis as the rules make them: with an end, their failures told to the breaker, and with the refusals of the gate
// passed on to those who flip epochs. Only a probe says that all is well again: others may be answered by a Redis that
// does not write.
import { MillraceError } from '../../core/errors.ts'
import { isPlanted } from '../../core/planted.ts'
import { bounded } from '../../runtime/bounded.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import type { EpochTag, GateRefusal, Gated, ProbeReply, Race } from './ports.ts'

export interface RaceCallsOptions {
  readonly runtime: Runtime
  readonly race: Race
  readonly timeoutMs: number
  /** A probe that takes longer has failed. */
  readonly probeMs: number
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
    const { runtime, race, timeoutMs, onAnswer } = this.#options
    const value = await this.#told(queue, bounded(runtime.clock, timeoutMs, 'Redis', call(race)))
    if (isPlanted('hybrid-read-heals')) onAnswer(queue)
    return value
  }

  /** Whether this Redis can be used, and who it is. `ready` comes first, within the same time. */
  async probe(queue: string, tag: EpochTag | null, ready: () => Promise<void>): Promise<ProbeReply> {
    const { race, onAnswer } = this.#options
    const ask = async (): Promise<ProbeReply> => {
      await ready()
      if (!isPlanted('hybrid-read-heals')) return race.probe(queue, tag)
      return { redisId: await race.identity(queue), refused: null }
    }
    const reply = await this.#told(queue, this.#inTime(ask()))
    onAnswer(queue)
    return reply
  }

  async #told<Value>(queue: string, answer: Promise<Value>): Promise<Value> {
    const { runtime, onError } = this.#options
    const startedMs = runtime.clock.monoMs()
    try {
      return await answer
    } catch (error) {
      onError(queue, startedMs)
      throw error
    }
  }

  /** An answer that lies there unread, because a handler has blocked the loop, is in time. */
  #inTime<Value>(answer: Promise<Value>): Promise<Value> {
    const { runtime, probeMs } = this.#options
    return new Promise((resolve, reject) => {
      const late = new MillraceError('STORE_TIMEOUT', `Redis took longer than ${probeMs} ms`, { retryable: true })
      const timer = runtime.clock.timer(probeMs, () => void runtime.clock.breathe().then(() => reject(late)))
      answer.then(resolve, reject).finally(() => timer.cancel())
    })
  }
}
