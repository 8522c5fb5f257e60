// How many jobs may run at once in this process, shared by the engines of several connections. A job that
// must run alone gets the process for itself: nothing else runs, and nothing else is even held.

/** One of the engines that share the slots. */
export interface SlotUser {
  /** A slot is free, or the process is everybody's again. */
  onSlot(): void
  /** Another engine wants the process for itself: give back whatever has not started. */
  onYield(): void
}

export class Slots {
  readonly max: number
  #used = 0
  #held = 0
  #exclusive: SlotUser | undefined
  #users: SlotUser[] = []

  constructor(max: number) {
    this.max = max
  }

  get used(): number {
    return this.#used
  }

  get free(): number {
    return this.max - this.#used
  }

  get isShared(): boolean {
    return this.#users.length > 1
  }

  join(user: SlotUser): void {
    this.#users.push(user)
  }

  leave(user: SlotUser): void {
    this.#users = this.#users.filter((other) => other !== user)
    this.release(user)
  }

  mayUse(user: SlotUser): boolean {
    return this.#exclusive === undefined || this.#exclusive === user
  }

  take(): void {
    this.#used += 1
  }

  giveBack(): void {
    this.#used -= 1
    this.#offer()
  }

  /** A job was claimed, or a claim is under way: whatever it brings will be held. */
  hold(): void {
    this.#held += 1
  }

  /** The end of the job was confirmed by the store, or the claim was answered. */
  letGo(): void {
    this.#held -= 1
    if (this.#exclusive !== undefined) this.#exclusive.onSlot()
  }

  /** Asks for the process; true when nothing but this one job is held any more, and nothing is on its way. */
  reserve(user: SlotUser): boolean {
    if (this.#exclusive === undefined) {
      this.#exclusive = user
      for (const other of this.#users) if (other !== user) other.onYield()
    }
    return this.#exclusive === user && this.#used === 0 && this.#held === 1
  }

  release(user: SlotUser): void {
    if (this.#exclusive !== user) return
    this.#exclusive = undefined
    this.#offer()
  }

  // The one who was asked first last time comes last now, so a long backlog cannot keep the others out.
  #offer(): void {
    const [first] = this.#users
    if (first !== undefined && this.#users.length > 1) this.#users = [...this.#users.slice(1), first]
    for (const user of this.#users) user.onSlot()
  }
}
