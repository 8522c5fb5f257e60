// A session's doubt whether PostgreSQL calls rows its own that it does not run: an adoption marked a token that was not handed
// out, a claim of the ledger was lost, somebody who cancels marked it. A statement whose answer was given up may still
// take effect until the server ends it, so one look right after the cause is not enough: the last one comes that much later.
export class Doubt {
  /** How long a statement may go on after nobody waits for it. */
  readonly #lateMs: number
  #causedMs = -Infinity
  /** Undefined: there is none. */
  #lookAtMs: number | undefined

  constructor(lateMs: number) {
    this.#lateMs = lateMs
  }

  raise(nowMs: number): void {
    this.#causedMs = this.#lookAtMs = nowMs
  }

  isDue(nowMs: number): boolean {
    return this.#lookAtMs !== undefined && nowMs >= this.#lookAtMs
  }

  /** A look that began then has found all that was to be seen. What was raised since stands. */
  looked(beganMs: number): void {
    if (this.#causedMs > beganMs) return
    const lastMs = this.#causedMs + this.#lateMs
    this.#lookAtMs = beganMs >= lastMs ? undefined : lastMs
  }
}
