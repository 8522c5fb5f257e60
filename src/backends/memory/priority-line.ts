// Jobs in line: by exact priority, then by `seq`. One list per priority that is in use; the priorities in
// use are kept sorted, and there are few of them, so taking the first costs the same from ten as from a
// million waiting jobs.
import { JobList } from './job-list.ts'
import type { JobRecord } from './record.ts'

export class PriorityLine {
  readonly #lists = new Map<number, JobList>()
  #priorities: number[] = []

  get isEmpty(): boolean {
    return this.#priorities.length === 0
  }

  get size(): number {
    let size = 0
    for (const list of this.#lists.values()) size += list.size
    return size
  }

  add(record: JobRecord): void {
    let list = this.#lists.get(record.priority)
    if (list === undefined) {
      list = new JobList()
      this.#lists.set(record.priority, list)
      const at = this.#priorities.findIndex((priority) => priority > record.priority)
      this.#priorities.splice(at === -1 ? this.#priorities.length : at, 0, record.priority)
    }
    list.insertBySeq(record)
  }

  first(): JobRecord | null {
    const [priority] = this.#priorities
    return priority === undefined ? null : (this.#lists.get(priority)?.head ?? null)
  }

  remove(record: JobRecord): void {
    const list = record.list
    if (list === null) return
    list.remove(record)
    if (list.size > 0) return
    this.#lists.delete(record.priority)
    // Nearly always the first: that is where jobs are taken.
    if (this.#priorities[0] === record.priority) this.#priorities.shift()
    else this.#priorities.splice(this.#priorities.indexOf(record.priority), 1)
  }

  /** The first of each priority. */
  *heads(): Iterable<JobRecord> {
    for (const { head } of this.#lists.values()) if (head !== null) yield head
  }

  *records(): Iterable<JobRecord> {
    for (const priority of this.#priorities) {
      for (let at = this.#lists.get(priority)?.head ?? null; at !== null; at = at.next) yield at
    }
  }
}
