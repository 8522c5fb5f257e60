// Reads a line of words that a store has written: numbers and names with a space between them, one after the other. By
// character: a word cut out and turned into a number costs twice as much, and there are seven or eight in the line of every job.
const SPACE = 32
const MINUS = 45
const DIGIT_0 = 48
const DIGIT_9 = 57

export class WordReader {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  /** Where the next word begins. */
  get at(): number {
    return this.#at
  }

  get isOver(): boolean {
    return this.#at >= this.#text.length
  }

  /** A whole number, at most 2^53. Throws where the next word is none. */
  number(): number {
    const text = this.#text
    let at = this.#at
    let code = text.charCodeAt(at)
    const isNegative = code === MINUS
    if (isNegative) code = text.charCodeAt(++at)
    const from = at
    let value = 0
    while (code >= DIGIT_0 && code <= DIGIT_9) {
      value = value * 10 + (code - DIGIT_0)
      code = text.charCodeAt(++at)
    }
    const isOver = code === SPACE || at >= text.length
    if (at === from || !isOver || value > Number.MAX_SAFE_INTEGER)
      throw new Error('a word that should be a number is none')
    this.#at = at + 1
    return isNegative ? -value : value
  }

  /** Throws where the line is over. */
  word(): string {
    const from = this.#at
    const to = this.#text.indexOf(' ', from)
    if (to < 0 && from >= this.#text.length) throw new Error('a line has fewer words than it should have')
    this.#at = to < 0 ? this.#text.length : to + 1
    return to < 0 ? this.#text.slice(from) : this.#text.slice(from, to)
  }

  /** Exactly so many characters, with the one character behind them. Throws where that is another one. */
  fixed(length: number, end: string): string {
    const from = this.#at
    if (this.#text[from + length] !== end) throw new Error(`a word is not ${length} characters long`)
    this.#at = from + length + 1
    return this.#text.slice(from, from + length)
  }
}
