// What became of tokens in this process, since it was last told to Redis. Counted per call, not per job.
import type { RaceEye, TokenCount } from './eye.ts'

type Counts = Partial<Record<TokenCount, number>>

export class Tally {
  #counts = new Map<string, Counts>()

  add(queue: string, name: TokenCount, number: number): void {
    if (number <= 0) return
    let own = this.#counts.get(queue)
    if (own === undefined) this.#counts.set(queue, (own = {}))
    own[name] = (own[name] ?? 0) + number
  }

  /** What Redis does not take is told with the next call. An answer that was lost counts twice: it is for people. */
  async tell(eye: RaceEye): Promise<void> {
    const counts = this.#counts
    this.#counts = new Map()
    for (const [queue, more] of counts) {
      try {
        await eye.count(queue, more)
        counts.delete(queue)
      } catch {
        break
      }
    }
    for (const [queue, more] of counts) {
      for (const [name, number] of Object.entries(more)) this.add(queue, name as TokenCount, number) // the keys of Counts
    }
  }
}
