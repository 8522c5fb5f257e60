// Jobs by a moment: scheduled ones by their run time, running ones with a visibility by its end. Each
// record knows its index, so leaving early costs O(log n) and leaves nothing behind.
import { assert } from '../../core/errors.ts'
import type { JobRecord } from './record.ts'

export class TimeHeap {
  readonly #records: JobRecord[] = []

  get size(): number {
    return this.#records.length
  }

  first(): JobRecord | null {
    return this.#records[0] ?? null
  }

  /** Those at or before this moment, in no order. A subtree later than it is not entered. */
  *until(atMs: number, index = 0): Iterable<JobRecord> {
    const record = this.#records[index]
    if (record === undefined || record.heapKeyMs > atMs) return
    yield record
    yield* this.until(atMs, 2 * index + 1)
    yield* this.until(atMs, 2 * index + 2)
  }

  add(record: JobRecord, atMs: number): void {
    assert(record.heapIndex === -1, `job ${record.id} is in two places`)
    record.heapKeyMs = atMs
    record.heapIndex = this.#records.length
    this.#records.push(record)
    this.#up(record.heapIndex)
  }

  remove(record: JobRecord): void {
    const index = record.heapIndex
    assert(this.#records[index] === record, `job ${record.id} is not in this heap`)
    const last = this.#records.pop()
    record.heapIndex = -1
    if (last === undefined || last === record) return
    this.#put(last, index)
    this.#up(index)
    this.#down(last.heapIndex)
  }

  #up(from: number): void {
    let index = from
    while (index > 0) {
      const parent = (index - 1) >> 1
      if (!this.#before(index, parent)) return
      this.#swap(index, parent)
      index = parent
    }
  }

  #down(from: number): void {
    let index = from
    for (;;) {
      const left = 2 * index + 1
      const right = left + 1
      let least = index
      if (left < this.#records.length && this.#before(left, least)) least = left
      if (right < this.#records.length && this.#before(right, least)) least = right
      if (least === index) return
      this.#swap(index, least)
      index = least
    }
  }

  #before(a: number, b: number): boolean {
    const [one, other] = [this.#at(a), this.#at(b)]
    return one.heapKeyMs < other.heapKeyMs || (one.heapKeyMs === other.heapKeyMs && one.no < other.no)
  }

  #swap(a: number, b: number): void {
    const [one, other] = [this.#at(a), this.#at(b)]
    this.#put(one, b)
    this.#put(other, a)
  }

  #put(record: JobRecord, index: number): void {
    this.#records[index] = record
    record.heapIndex = index
  }

  #at(index: number): JobRecord {
    const record = this.#records[index]
    assert(record !== undefined, 'heap index out of range')
    return record
  }
}
