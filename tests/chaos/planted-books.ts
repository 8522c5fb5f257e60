// Books as the checks of the chaos runs read them, with two jobs that were run as they should be.
import { booksOf } from '../../chaos/books.ts'
import type { Books } from '../../chaos/books.ts'

export const LEDGER = ['asked a 1', 'acked a 2', 'asked b 3', 'acked b 4', 'asked c 5']
export const RUNS = ['start a 7 10', 'end a 7 20', 'start b 8 11', 'end b 8 21']
export const RECORD = { status: 'completed', attempts: 1, rows: 1, successes: 1 }
export const RECORDED = [
  { id: 'a', ...RECORD, result: '7 10' },
  { id: 'b', ...RECORD, result: '8 11' },
]

export function books(runs: readonly string[] = RUNS, ledger: readonly string[] = LEDGER): Books {
  return booksOf(ledger, runs)
}
