// In which queue a job is. Ids carry no queue, and keys belong to queues; whoever has seen a job knows. A guess that is
// wrong or missing costs a look into every queue, nothing else. Bounded: two generations, the older one is dropped.
const GENERATION_MAX = 20_000

export class Whereabouts {
  #young = new Map<string, string>()
  #old = new Map<string, string>()

  saw(id: string, queue: string): void {
    this.#young.set(id, queue)
    if (this.#young.size < GENERATION_MAX) return
    this.#old = this.#young
    this.#young = new Map()
  }

  /** Empty: not known here. */
  of(id: string): string {
    return this.#young.get(id) ?? this.#old.get(id) ?? ''
  }

  /** A job that has ended is rarely asked for again. */
  forget(id: string): void {
    this.#young.delete(id)
  }
}
