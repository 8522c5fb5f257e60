// The stage of a cell: fresh stores, workers and a producer as processes of their own, each with its own links, and
// books outside the stores. What is done to them is in phases/, what is judged in judge.ts.
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { uuidv7 } from 'uuidv7'
import { until } from '../tests/postgres/faults/until.ts'
import { runDirectory } from '../tests/support/run-directory.ts'
import { readBooks, writeLine, writeLines } from './books.ts'
import type { BookFiles, Books } from './books.ts'
import { openLink } from './link.ts'
import type { Link } from './link.ts'
import type { OwnStores } from './own-stores.ts'
import type { Look } from './protocol.ts'
import type { Servers } from './servers.ts'
import { startProcess } from './start-process.ts'
import type { ChaosProcess, Program } from './start-process.ts'
import type { ChaosJob, ChaosSystem, OpenProducer, Place } from './system.ts'
import { OURS } from './systems/catalogue.ts'

export interface Load {
  /** Offered by the producer. 0: it offers nothing. */
  readonly ratePerS: number
  /** How long those jobs take that are there to be interrupted. */
  readonly longMs: number
  /** Undefined: the default of the system. */
  readonly ttlMs?: number
  /** The first workers. Default: two. */
  readonly crew?: readonly Look[]
}

/** A job of the harness. */
export type OwnJob = Omit<ChaosJob, 'id' | 'group'> & { readonly id?: string }

export interface StageOptions {
  readonly system: ChaosSystem
  readonly servers: Servers
  readonly program: Program
  readonly place: Place
  /** Of a scenario that has any. */
  readonly own: OwnStores | undefined
  readonly load: Load
}

export interface Member extends ChaosProcess {
  readonly link: Link
}

export interface Stage extends StageOptions {
  /** Where the stores are now. */
  readonly place: Place
  /** Other servers take over: everybody goes there, also who is started later. */
  readonly moveTo: (place: Place) => void
  readonly files: BookFiles
  /** All that were started, in order; some may have ended. */
  readonly workers: readonly Member[]
  readonly producers: readonly Member[]
  /** The job that kills its process, and the one that blocks the loop of its process. */
  readonly pill: string
  readonly blocker: string
  /** Without a look: the next of the crew. */
  readonly startWorker: (look?: Look) => Promise<Member>
  readonly startProducer: (ratePerS?: number) => Promise<Member>
  /** By the harness itself, in the books like all others. */
  readonly enqueue: (job: OwnJob) => Promise<string>
  /** So many of the same kind, as fast as it goes. */
  readonly enqueueMany: (count: number, job: Omit<OwnJob, 'id'>) => Promise<void>
  readonly books: () => Books
  close(): Promise<void>
}

export const CONCURRENCY = 20
const BULK = 1_000
/** So many slots are taken by long jobs, so that there is something to interrupt. */
const LONG_SLOTS = 15
/** Under 1000 jobs/s each has time to work its row off before the next one comes. */
const GROUPS = 8

export async function openStage(options: StageOptions): Promise<Stage> {
  const { system, program, load } = options
  let { place } = options
  const folder = mkdtempSync(join(await runDirectory(), 'chaos-'))
  const files = { ledger: join(folder, 'ledger'), runs: join(folder, 'runs') }
  const [pill, blocker] = [uuidv7(), uuidv7()]
  const workers: Member[] = []
  const producers: Member[] = []
  const crew = load.crew ?? [{}, {}]
  const start = async (members: Member[], settings: Parameters<typeof settingsOn>[1], look?: Look): Promise<Member> => {
    const link = await openLink(place)
    const child = await startProcess(program, settingsOn(link.place, settings), look).catch(async (error: unknown) => {
      await link.close()
      throw error
    })
    // Not a copy: what it says of itself changes.
    const member = Object.assign(child, { link })
    members.push(member)
    return member
  }
  let started = 0
  const startWorker = (look: Look = crew[started % crew.length]!): Promise<Member> => {
    started += 1
    const { ttlMs } = load
    const { workers: count = 1, concurrency = CONCURRENCY } = look
    const times = ttlMs === undefined ? {} : { ttlMs }
    const many = { workers: count, concurrency }
    const own = { role: 'worker', runs: files.runs, ...many, pill, blocker, ...times } as const
    return start(workers, { system: system.name, ...own }, look)
  }
  const startProducer = (ratePerS = load.ratePerS): Promise<Member> => {
    const longEvery = Math.max(Math.ceil((ratePerS * load.longMs) / 1000 / LONG_SLOTS), 1)
    const pace = { ratePerS, longEvery, longMs: load.longMs, groups: system.name === OURS ? GROUPS : 0 }
    const own = { role: 'producer', ledger: files.ledger, ...pace } as const
    return start(producers, { system: system.name, ...own })
  }
  let direct: Promise<OpenProducer> | undefined
  const close = async (): Promise<void> => {
    const all = [...workers, ...producers]
    for (const member of all) member.signal('SIGKILL')
    await until(() => all.every(({ isAlive }) => !isAlive), 'all processes to end')
    await Promise.all(all.map(({ link }) => link.close()))
    await (await direct)?.close()
  }
  try {
    await system.prepare(place)
    // The first one leads, so it is there before the others.
    await startWorker()
    const others = [...crew.slice(1).map((look) => startWorker(look)), ...(load.ratePerS > 0 ? [startProducer()] : [])]
    // Nobody is still on the way when all are ended.
    await Promise.allSettled(others)
    await Promise.all(others)
  } catch (error) {
    await close()
    throw error
  }
  return {
    ...options,
    files,
    workers,
    producers,
    pill,
    blocker,
    get place() {
      return place
    },
    moveTo(next) {
      place = next
      for (const { link } of [...workers, ...producers]) link.moveTo(next)
    },
    startWorker,
    startProducer,
    async enqueue(asked) {
      const job = { id: uuidv7(), ...asked }
      writeLines(files.ledger, linesOf([job]))
      direct ??= system.openProducer(place)
      await (await direct).enqueue(job)
      writeLine(files.ledger, 'acked', job.id, Date.now())
      return job.id
    },
    async enqueueMany(count, asked) {
      direct ??= system.openProducer(place)
      const producer = await direct
      for (let done = 0; done < count; done += BULK) {
        const jobs = Array.from({ length: Math.min(BULK, count - done) }, () => ({ id: uuidv7(), ...asked }))
        writeLines(files.ledger, linesOf(jobs))
        await (producer.enqueueMany?.(jobs) ?? Promise.all(jobs.map((job) => producer.enqueue(job))))
        const nowMs = Date.now()
        writeLines(
          files.ledger,
          jobs.map(({ id }) => ['acked', id, nowMs]),
        )
      }
    },
    books: () => readBooks(files),
    close,
  }
}

function linesOf(jobs: readonly ChaosJob[]): readonly (readonly (string | number)[])[] {
  const nowMs = Date.now()
  return jobs.flatMap(({ id, dueMs }) => [['asked', id, nowMs], ...(dueMs === undefined ? [] : [['due', id, dueMs]])])
}

type Own = Omit<Parameters<typeof startProcess>[1], 'place'>

function settingsOn(place: Place, settings: Own): Parameters<typeof startProcess>[1] {
  return { ...settings, place } as Parameters<typeof startProcess>[1] // the role says which of the two it is
}
