// What a session knows of its takes that stood in one queue: which of them a push may have answered unheard. Messages of one session
// come in order or not at all, so one that is heard proves that those before it were lost.

/** A take that stood, and the claim it was part of. */
export interface Stood {
  readonly c: number
  readonly claimNo: number
}

export class Hands {
  /** Answered, as far as is known: perhaps, or surely; not yet heard, nor found by a look. */
  #open: { readonly stood: Stood; isAnswered: boolean }[] = []
  /** What takes up to this number were answered with was heard, or is found by a look. */
  #knownC = 0
  #last: Stood | undefined

  /** The take of this number, if it stood: the next one is told whether it was answered, and no other. */
  stoodAt(c: number): Stood | undefined {
    return this.#last?.c === c ? this.#last : undefined
  }

  get knownC(): number {
    return this.#knownC
  }

  /** No push can have answered a take unheard. */
  get isKnown(): boolean {
    return this.#open.length === 0
  }

  stand(stood: Stood): void {
    this.#last = stood
    this.#open.push({ stood, isAnswered: false })
  }

  /** It does not stand after all: it brought something. */
  fell(c: number): void {
    this.#open = this.#open.filter(({ stood }) => stood.c !== c)
  }

  /**
   * What the take after it says. `lost`: a later message was heard, and none of this one. That may have been of another queue:
   * `heardNo` is the last claim that was heard of in any.
   */
  told(stood: Stood, isAnswered: boolean, heardNo: number): 'settled' | 'unheard' | 'lost' {
    const found = this.#open.find((one) => one.stood === stood)
    if (!isAnswered) this.fell(stood.c)
    if (!isAnswered || found === undefined) return 'settled'
    found.isAnswered = true
    return stood.c < this.#knownC || stood.claimNo < heardNo ? 'lost' : 'unheard'
  }

  /** Null: it came twice, or was found by a look and goes back. Else whether an earlier one is lost. */
  hear(c: number): { readonly isMissing: boolean } | null {
    if (c <= this.#knownC) return null
    this.#knownC = c
    this.fell(c)
    return { isMissing: this.#open.some(({ stood, isAnswered }) => isAnswered && stood.c < c) }
  }

  /** A look found whatever takes up to this number were answered with. */
  looked(c: number): void {
    this.#knownC = Math.max(this.#knownC, c)
    this.#open = this.#open.filter(({ stood }) => stood.c > c)
  }

  /** The epoch is another: what was handed over in the old one comes back by itself. */
  forget(): void {
    this.#open = []
  }
}
