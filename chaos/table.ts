// One cell as a line of text, and the head of such lines.
import type { Cell } from './cell.ts'
import { wordsOf } from './figures.ts'
import { promisedText } from './promise.ts'

interface Column {
  readonly title: string
  readonly width: number
  readonly say: (cell: Cell) => string
}

export const COLUMNS: readonly Column[] = [
  { title: 'scenario', width: 24, say: ({ scenario }) => scenario },
  { title: 'system', width: 26, say: ({ system, backend }) => `${system}:${backend}` },
  { title: 'jobs', width: 6, say: ({ enqueued }) => String(enqueued) },
  { title: 'refused', width: 7, say: ({ refused }) => String(refused) },
  { title: 'lost', width: 5, say: ({ lost }) => String(lost) },
  { title: 'given up', width: 8, say: ({ givenUp }) => String(givenUp) },
  { title: 'stuck', width: 5, say: ({ stuck }) => String(stuck) },
  { title: 'stale', width: 5, say: ({ stale }) => numberOf(stale, 0) },
  { title: 'again', width: 6, say: ({ duplicatesAllowed }) => String(duplicatesAllowed) },
  { title: 'twice', width: 5, say: ({ duplicated, duplicatesAllowed }) => String(duplicated - duplicatesAllowed) },
  { title: 'recovery s', width: 10, say: ({ recoverySeconds }) => numberOf(recoverySeconds, 1) },
  { title: 'rate', width: 6, say: ({ throughputRatio }) => percent(throughputRatio) },
  { title: 'steady s', width: 8, say: ({ steadySeconds }) => numberOf(steadySeconds, 1) },
  { title: 'promised', width: 28, say: ({ promised }) => promisedText(promised) },
  { title: 'ok', width: 3, say: ({ ok }) => (ok ? 'yes' : 'NO') },
  { title: 'note', width: 0, say: factsOf },
]

export const HEAD = COLUMNS.map(({ title, width }) => title.padEnd(width)).join('  ')

export function lineOf(cell: Cell): string {
  return COLUMNS.map(({ say, width }) => say(cell).padEnd(width))
    .join('  ')
    .trimEnd()
}

/** Its note, and what its scenario measured beside. */
export function factsOf({ note, figures = {} }: Cell): string {
  return [note, wordsOf(figures)].filter(Boolean).join('; ')
}

export function numberOf(value: number | null, digits: number): string {
  return value === null ? '–' : value.toFixed(digits)
}

export function percent(share: number | null): string {
  return share === null ? '–' : `${Math.round(share * 100)} %`
}
