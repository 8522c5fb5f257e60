// The dispatch rows as this process knows them. It may lag behind; every statement and script compares for itself, so a
// belief that is wrong costs a refusal, and the refusal brings the news.
import type { DispatchNews, DispatchRow, EpochTag } from './ports.ts'

interface Known {
  readonly row: DispatchRow
  readonly tag: EpochTag | null
}

export class DispatchView {
  readonly #known = new Map<string, Known>()
  readonly #listeners = new Set<(row: DispatchRow) => void>()
  /** The server behind PostgreSQL is another one: nothing mints until somebody has said so. */
  serverChanged = false
  /** Queues in mode token. */
  tokenQueues = 0

  onChange(listener: (row: DispatchRow) => void): void {
    this.#listeners.add(listener)
  }

  learn({ rows, serverChanged, epoch }: DispatchNews): void {
    // Without a counter nobody has looked.
    if (serverChanged || epoch > 0) this.serverChanged = serverChanged
    for (const row of rows) this.learnRow(row)
  }

  learnRow(row: DispatchRow): void {
    const before = this.#known.get(row.queue)?.row
    if (before !== undefined && !isNewer(row, before)) return
    const tag = tagOf(row)
    this.tokenQueues += Number(row.mode === 'token') - Number(before?.mode === 'token')
    this.#known.set(row.queue, { row, tag })
    for (const listener of this.#listeners) listener(row)
  }

  row(queue: string): DispatchRow | undefined {
    return this.#known.get(queue)?.row
  }

  /** Null: there are no tokens of this queue now. */
  tag(queue: string): EpochTag | null {
    return this.serverChanged ? null : (this.#known.get(queue)?.tag ?? null)
  }

  /** Those that have tokens now. */
  tokenRows(): readonly DispatchRow[] {
    return [...this.rows()].filter(({ queue }) => this.tag(queue) !== null)
  }

  rows(): Iterable<DispatchRow> {
    return [...this.#known.values()].map(({ row }) => row)
  }
}

function isNewer(row: DispatchRow, before: DispatchRow): boolean {
  if (row.epoch !== before.epoch) return row.epoch > before.epoch
  return (row.birth !== null && before.birth === null) || row.configVersion > before.configVersion
}

/** Scripts compare the birth too: an epoch that was opened twice is two. */
function tagOf(row: DispatchRow): EpochTag | null {
  return row.mode === 'token' && row.birth !== null ? `${row.epoch}.${row.birth}` : null
}
