// What producers and operators do in one seed, as a list of acts at moments. An act may fail: its store call
// may be lost, its process may crash in the middle. The ledger notes what the actor was told.
import type { AnyJob, BatchId, JobId, Millrace } from '../../src/index.ts'
import type { EnqueueOptions } from '../../src/index.ts'
import type { Focus } from './focus.ts'
import { STEPS } from './jobs.ts'
import type { JobKind, SimInput, Step } from './jobs.ts'
import type { Ledger } from './ledger.ts'
import type { Random } from './random.ts'

export interface Actor {
  readonly mill: Millrace
  readonly jobs: Record<JobKind, AnyJob>
}

export interface Act {
  readonly atMs: number
  readonly name: string
  readonly run: (actor: Actor) => Promise<void>
}

export const SCHEDULE = 'every-second'
export const LIMITED_KEYS = ['red', 'green'] as const
const GROUPS = ['g1', 'g2', 'g3']
const UNIQUE_KEYS = ['u1', 'u2']

/** Plain jobs, many at a time, of which some are cancelled soon. */
export function planFocused(random: Random, ledger: Ledger, durationMs: number, focus: Focus): readonly Act[] {
  const acts: Act[] = []
  const add = (name: string, run: Act['run']): void => {
    acts.push({ atMs: random.next() * durationMs, name, run })
  }
  const line = (): Line => {
    const options = random.chance(0.2) ? { priority: random.pick([5, 300]) } : {}
    return [
      ['plain', options],
      [random.pick(focus.steps), random.pick(focus.steps)],
    ]
  }
  for (let count = 40; count > 0; count--) {
    const own = line()
    add('enqueue', ({ mill, jobs }) =>
      asked(ledger, async (no) => (await mill.enqueue(jobs.plain, { no, steps: own[1] } as never, own[0][1])).id),
    )
  }
  for (let count = 14; count > 0; count--) {
    add('enqueue many', enqueueLines(Array.from({ length: random.int(4, 8) }, line), ledger))
  }
  for (let count = focus.longRuns; count > 0; count--) {
    const run: Act['run'] = ({ mill, jobs }) =>
      asked(ledger, async (no) => (await mill.enqueue(jobs.long, { no, steps: ['long'] } as never)).id)
    acts.push({ atMs: 200 + 200 * random.next(), name: 'enqueue a long one', run })
  }
  for (let count = focus.cancels; count > 0; count--) {
    add('cancel', async ({ mill }) => {
      const last = [...ledger.acknowledged()].slice(-20)
      if (last.length > 0) await mill.jobs.cancel(random.pick(last))
    })
  }
  return acts.sort((one, other) => one.atMs - other.atMs)
}

export function planWorkload(random: Random, ledger: Ledger, durationMs: number): readonly Act[] {
  const acts: Act[] = []
  const add = (name: string, run: Act['run'], atMs = random.next() * durationMs): void => {
    acts.push({ atMs, name, run })
  }
  const known = (): readonly JobId[] => [...ledger.acknowledged()]
  for (let count = random.int(90, 105); count > 0; count--) add('enqueue', enqueueOne(random, ledger))
  for (let count = random.int(6, 8); count > 0; count--) {
    add('enqueue many', enqueueMany(random, ledger, random.int(3, 8)).run)
  }
  for (let count = random.int(2, 3); count > 0; count--)
    add('batch', enqueueBatch(random, ledger), random.next() * durationMs * 0.6)
  for (let count = random.int(2, 4); count > 0; count--) add('flow', enqueueChain(random, ledger))
  add('schedule', ({ mill, jobs }) => schedule(mill, jobs.tick), random.next() * 500)
  const operate = (name: string, times: number, run: (mill: Millrace, id: JobId) => Promise<unknown>): void => {
    for (let count = times; count > 0; count--) {
      add(name, async ({ mill }) => {
        const ids = known()
        if (ids.length > 0) await run(mill, random.pick(ids))
      })
    }
  }
  operate('cancel', 6, (mill, id) => mill.jobs.cancel(id))
  operate('remove', 3, (mill, id) => {
    ledger.removals.add(id)
    return mill.jobs.remove(id)
  })
  for (let count = 5; count > 0; count--)
    add('replay', ({ mill }) => replayOne(mill, random), durationMs * (0.5 + random.next() / 2))
  for (const at of [0.2, 0.5, 0.8]) {
    const queue = random.pick(['open', 'limited'])
    add('pause', async ({ mill }) => void (await mill.queues.pause(queue)), durationMs * at)
    add('resume', async ({ mill }) => void (await mill.queues.resume(queue)), durationMs * (at + 0.1))
  }
  add('narrow', async ({ mill }) => void (await mill.queues.configure('open', { concurrency: random.int(2, 5) })))
  if (random.chance(0.4)) {
    add('cancel batch', async ({ mill }) => {
      const batch = ledger.batches[0]
      if (batch !== undefined) await mill.batches.cancel(batch.id)
    })
  }
  return acts.sort((one, other) => one.atMs - other.atMs)
}

function stepsOf(random: Random): readonly Step[] {
  // Now and then one that kills whoever runs it, three times and more: it must end as poison, alone.
  if (random.chance(0.002)) return ['kill', 'kill', 'kill', 'kill']
  return Array.from({ length: random.pick([0, 0, 1, 1, 2, 3]) }, () => random.pick(STEPS))
}

/** One request: noted before it is sent, acknowledged when the producer is told. */
async function asked(ledger: Ledger, send: (no: number) => Promise<JobId>): Promise<void> {
  const request = ledger.request()
  try {
    request.job = await send(request.no)
    request.state = 'acknowledged'
  } catch (error) {
    request.state = 'unknown'
    throw error
  }
}

function enqueueOne(random: Random, ledger: Ledger): Act['run'] {
  const [kind, options] = draw(random)
  const steps = stepsOf(random)
  return ({ mill, jobs }) =>
    asked(ledger, async (no) => (await mill.enqueue(jobs[kind] as AnyJob, { no, steps } as never, options)).id)
}

function draw(random: Random): readonly [JobKind, EnqueueOptions] {
  const options: { -readonly [Name in keyof EnqueueOptions]: EnqueueOptions[Name] } = {}
  if (random.chance(0.25)) options.priority = random.pick([5, 60, 100, 300])
  if (random.chance(0.15)) options.attempts = 1
  if (random.chance(0.3)) return ['limited', { ...options, limitKey: random.pick(LIMITED_KEYS) }]
  const special = random.pick([0, 1, 2, 2, 3, 4])
  if (special === 0) options.delay = random.int(1, 4_000)
  else if (special === 1) options.group = random.pick(GROUPS)
  else if (special === 2) {
    const mode = random.pick(['until-started', 'until-finished', 'for-a-time'] as const)
    const onDuplicate = random.pick(['keep', 'replace', 'debounce'] as const)
    const window = mode === 'for-a-time' ? { window: '2s' as const } : {}
    options.unique = { key: `${mode}:${random.pick(UNIQUE_KEYS)}`, mode, onDuplicate, ...window }
    if (onDuplicate === 'debounce') options.delay = 300
  }
  return ['plain', options]
}

/** The kind of a job with its options, and what its runs do. */
type Line = readonly [readonly [JobKind, EnqueueOptions], readonly Step[]]

export function enqueueMany(random: Random, ledger: Ledger, count: number): Pick<Act, 'name' | 'run'> {
  const lines = Array.from({ length: count }, () => [draw(random), stepsOf(random)] as const)
  return { name: 'enqueue many', run: enqueueLines(lines, ledger) }
}

function enqueueLines(lines: readonly Line[], ledger: Ledger): Act['run'] {
  return async ({ mill, jobs }) => {
    const requests = lines.map(() => ledger.request())
    try {
      const entries = lines.map(([[kind, options], steps], index) => {
        const input: SimInput = { no: requests[index]!.no, steps }
        return [jobs[kind], input as never, options] as const
      })
      const handles = await mill.enqueueMany(entries)
      for (const [index, request] of requests.entries()) {
        request.job = handles[index]!.id
        request.state = 'acknowledged'
      }
    } catch (error) {
      for (const request of requests) request.state = 'unknown'
      throw error
    }
  }
}

function enqueueBatch(random: Random, ledger: Ledger): Act['run'] {
  const count = random.int(3, 8)
  const steps = Array.from({ length: count }, () => stepsOf(random))
  return async ({ mill, jobs }) => {
    const callback = { no: -1, steps: [] } as never
    const options = {
      onComplete: [jobs.callback, callback],
      onSuccess: [jobs.callback, callback],
      onFailure: [jobs.callback, callback],
    } as const
    const batch = await mill.batch('sim', options)
    const noted = { id: batch.id as BatchId, sealed: false }
    ledger.batches.push(noted)
    for (const own of steps) {
      await asked(ledger, async (no) => (await batch.add(jobs.plain, { no, steps: own } as never)).id).catch(
        () => undefined,
      )
    }
    await batch.seal()
    noted.sealed = true
  }
}

function enqueueChain(random: Random, ledger: Ledger): Act['run'] {
  const onParentFailure = random.pick(['fail', 'cancel', 'continue'] as const)
  const length = random.int(2, 4)
  const steps = Array.from({ length }, () => stepsOf(random))
  return async ({ mill, jobs }) => {
    let parent: JobId | undefined
    for (const own of steps) {
      const options: EnqueueOptions = parent === undefined ? {} : { after: parent, onParentFailure }
      await asked(ledger, async (no) => {
        const { id } = await mill.enqueue(jobs.plain, { no, steps: own } as never, options)
        parent = id
        return id
      })
    }
  }
}

async function schedule(mill: Millrace, tick: AnyJob): Promise<void> {
  const options = {
    job: tick,
    input: { no: -1, steps: [] } as never,
    every: '1s',
    misfire: { catchUp: 1_000 },
  } as const
  await mill.schedules.upsert(SCHEDULE, options)
}

async function replayOne(mill: Millrace, random: Random): Promise<void> {
  const { items } = await mill.deadLetters.list({}, { limit: 20 })
  if (items.length === 0) return
  const { id } = random.pick(items)
  if (random.chance(0.6)) await mill.deadLetters.replay(id)
  else await mill.deadLetters.replayAsNew(id)
}
