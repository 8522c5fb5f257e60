// A cell that broke the harness is a result too: nothing is known of it, and it is tried again when a run is resumed.
import type { Cell } from './cell.ts'

const REASON = 'not played to the end: '

export function unplayed(named: Pick<Cell, 'scenario' | 'system' | 'backend'>, error: unknown): Cell {
  const message = error instanceof Error ? error.message : String(error)
  return {
    ...named,
    enqueued: 0,
    refused: 0,
    completed: 0,
    lost: 0,
    givenUp: 0,
    stuck: 0,
    unexpected: 0,
    stale: null,
    duplicated: 0,
    duplicatesAllowed: 0,
    overlaps: 0,
    disorder: null,
    miscounted: null,
    wrongTicks: null,
    recoverySeconds: null,
    throughputRatio: null,
    steadySeconds: null,
    quits: 0,
    ttlSeconds: null,
    offeredPerSecond: 0,
    promised: null,
    seconds: 0,
    ok: false,
    note: `${REASON}${message.split('\n')[0]}`,
  }
}

export function isPlayed({ note }: Pick<Cell, 'note'>): boolean {
  return !note.startsWith(REASON)
}
