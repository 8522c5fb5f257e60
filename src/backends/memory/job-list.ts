// A doubly linked list through the records themselves: append, remove and pop cost the same whatever the
// length, and a cancelled job leaves no hole behind.
import { assert } from '../../core/errors.ts'
import type { JobRecord } from './record.ts'

export class JobList {
  head: JobRecord | null = null
  tail: JobRecord | null = null
  size = 0

  append(record: JobRecord): void {
    assert(record.list === null, `job ${record.id} is in two places`)
    record.list = this
    record.previous = this.tail
    record.next = null
    if (this.tail === null) this.head = record
    else this.tail.next = record
    this.tail = record
    this.size += 1
  }

  /** Keeps the order of `seq`; a job that comes back finds its place near the head. */
  insertBySeq(record: JobRecord): void {
    if (this.tail === null || this.tail.seq < record.seq) {
      this.append(record)
      return
    }
    let after = this.head
    while (after !== null && after.seq < record.seq) after = after.next
    assert(after !== null && record.list === null, 'ordered insert lost its place')
    record.list = this
    record.next = after
    record.previous = after.previous
    if (after.previous === null) this.head = record
    else after.previous.next = record
    after.previous = record
    this.size += 1
  }

  remove(record: JobRecord): void {
    assert(record.list === this, `job ${record.id} is not in this list`)
    if (record.previous === null) this.head = record.next
    else record.previous.next = record.next
    if (record.next === null) this.tail = record.previous
    else record.next.previous = record.previous
    record.list = null
    record.previous = null
    record.next = null
    this.size -= 1
  }
}
