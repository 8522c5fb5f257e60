// What each library's file here answers about a value that somebody passed as a transaction. A library is
// known by the shape of its objects, never by its classes: none of them is a dependency, and a program may
// hold two copies of one.

export type SqlParam = string | number | boolean | null

/** Answers when the value is of this library, transaction or not. */
export type Recognise = (value: unknown) => Candidate | undefined

export interface Candidate {
  /** As its users call it. */
  readonly library: string
  /** The line of code that has an open transaction to pass. */
  readonly example: string
  /** Asked anew before every statement: a transaction may have ended since. */
  state(): TransactionState
  /** Runs in the transaction; answers and fails in the manner of the library. */
  run(text: string, params: readonly SqlParam[]): Promise<unknown>
}

/** `unknown`: this side cannot tell an open transaction from one that is over, so the server is asked. */
export type TransactionState = 'open' | 'unknown' | { readonly problem: string }
