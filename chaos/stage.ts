// The stage of a cell: fresh stores, workers and a producer as processes of their own, each with its own links, and
// books outside the stores. What is done to them is in phases/, what is judged in judge.ts.
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { uuidv7 } from 'uuidv7'
import { until } from '../tests/postgres/faults/until.ts'
import { runDirectory } from '../tests/support/run-directory.ts'
import { readBooks, writeLine } from './books.ts'
import type { BookFiles, Books } from './books.ts'
import { openLink } from './link.ts'
import type { Link } from './link.ts'
import type { Servers } from './servers.ts'
import { startProcess } from './start-process.ts'
import type { ChaosProcess, Program } from './start-process.ts'
import type { ChaosSystem, OpenProducer, Place } from './system.ts'
import { OURS } from './systems/catalogue.ts'

export interface Load {
  /** Offered by the producer. 0: it offers nothing. */
  readonly ratePerS: number
  /** Undefined: the default of the system. */
  readonly ttlMs?: number
}

export interface StageOptions {
  readonly system: ChaosSystem
  readonly servers: Servers
  readonly program: Program
  readonly place: Place
  readonly load: Load
}

export interface Member extends ChaosProcess {
  readonly link: Link
}

export interface Stage extends StageOptions {
  readonly files: BookFiles
  /** All that were started, in order; some may have ended. */
  readonly workers: readonly Member[]
  readonly producers: readonly Member[]
  /** The job that kills its process, and the one that blocks the loop of its process. */
  readonly pill: string
  readonly blocker: string
  readonly startWorker: () => Promise<Member>
  readonly startProducer: (ratePerS?: number) => Promise<Member>
  /** By the harness itself, in the books like all others. */
  readonly enqueue: (job: { readonly id?: string; readonly longMs: number }) => Promise<string>
  readonly books: () => Books
  close(): Promise<void>
}

const CONCURRENCY = 20
const LONG_MS = 1_500
/** So many slots are taken by long jobs, so that there is something to interrupt. */
const LONG_SLOTS = 15
const GROUPS = 4

export async function openStage(options: StageOptions): Promise<Stage> {
  const { system, program, place, load } = options
  const folder = mkdtempSync(join(await runDirectory(), 'chaos-'))
  const files = { ledger: join(folder, 'ledger'), runs: join(folder, 'runs') }
  const [pill, blocker] = [uuidv7(), uuidv7()]
  const workers: Member[] = []
  const producers: Member[] = []
  const start = async (members: Member[], settings: Parameters<typeof settingsOn>[1]): Promise<Member> => {
    const link = await openLink(place)
    const child = await startProcess(program, settingsOn(link.place, settings)).catch(async (error: unknown) => {
      await link.close()
      throw error
    })
    // Not a copy: what it says of itself changes.
    const member = Object.assign(child, { link })
    members.push(member)
    return member
  }
  const startWorker = (): Promise<Member> => {
    const { ttlMs } = load
    const times = { ...(ttlMs !== undefined && { ttlMs }), dieAt: 'hybrid.relay-minted' } as const
    const own = { role: 'worker', runs: files.runs, concurrency: CONCURRENCY, pill, blocker, ...times } as const
    return start(workers, { system: system.name, ...own })
  }
  const startProducer = (ratePerS = load.ratePerS): Promise<Member> => {
    const longEvery = Math.max(Math.ceil((ratePerS * LONG_MS) / 1000 / LONG_SLOTS), 1)
    const pace = { ratePerS, longEvery, longMs: LONG_MS, groups: system.name === OURS ? GROUPS : 0 }
    const own = { role: 'producer', ledger: files.ledger, ...pace, dieAt: 'hybrid.before-push' } as const
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
    const others = [startWorker(), ...(load.ratePerS > 0 ? [startProducer()] : [])]
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
    startWorker,
    startProducer,
    async enqueue({ id = uuidv7(), longMs }) {
      writeLine(files.ledger, 'asked', id, Date.now())
      direct ??= system.openProducer(place)
      await (await direct).enqueue({ id, longMs })
      writeLine(files.ledger, 'acked', id, Date.now())
      return id
    },
    books: () => readBooks(files),
    close,
  }
}

type Own = Omit<Parameters<typeof startProcess>[1], 'place'>

function settingsOn(place: Place, settings: Own): Parameters<typeof startProcess>[1] {
  return { ...settings, place } as Parameters<typeof startProcess>[1] // the role says which of the two it is
}
