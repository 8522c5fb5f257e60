// A running hash of everything that happened, to tell whether a replay is the same run, and the last lines
// in words for the reader of a failing seed.

export class Trace {
  #hash = 0x811c9dc5
  readonly #lines: string[] | undefined

  constructor(keepLines: boolean) {
    this.#lines = keepLines ? [] : undefined
  }

  add(atMs: number, ...parts: readonly (string | number)[]): void {
    const line = `${atMs.toFixed(3)} ${parts.join(' ')}`
    let hash = this.#hash
    for (let index = 0; index < line.length; index++) {
      hash = Math.imul(hash ^ line.charCodeAt(index), 0x01000193)
    }
    this.#hash = hash
    this.#lines?.push(line)
  }

  get hash(): string {
    return (this.#hash >>> 0).toString(16).padStart(8, '0')
  }

  get lines(): readonly string[] {
    return this.#lines ?? []
  }
}
