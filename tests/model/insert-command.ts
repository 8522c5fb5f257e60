// Inserting random jobs: several per call, with everything an insert can ask for.
import fc from 'fast-check'
import { expect } from 'vitest'
import type { BatchId, JobId, NewJob } from '../../src/core/job.ts'
import type { UniqueHold } from '../../src/core/unique.ts'
import { promoteDue } from './gates.ts'
import { insertJobs } from './insert.ts'
import { command, freshDelay, mintId, newJob, pickFrom } from './program.ts'
import type { Command, Program, Store } from './program.ts'

interface Wish {
  readonly tight: boolean
  readonly priority: number
  readonly delayMs: number
  readonly maxAttempts: number
  readonly unique: number | null
  readonly onDuplicate: UniqueHold['onDuplicate']
  readonly group: string | null
  readonly limitKey: string | null
  readonly parents: readonly { readonly which: number; readonly onFailure: 'fail' | 'cancel' | 'continue' }[]
  readonly batch: number | null
  readonly inside: boolean
}

const sometimes = <Value>(value: fc.Arbitrary<Value>): fc.Arbitrary<Value | null> =>
  fc.oneof({ weight: 2, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: value })

const parent = fc.record({
  which: fc.nat({ max: 1_000 }),
  onFailure: fc.constantFrom('fail', 'cancel', 'continue'),
})

const wish: fc.Arbitrary<Wish> = fc.record({
  tight: fc.boolean(),
  priority: fc.constantFrom(10, 50, 100, 100, 100, 151, 200),
  delayMs: fc.oneof(
    { weight: 3, arbitrary: fc.constant(0) },
    { weight: 1, arbitrary: fc.integer({ min: 1, max: 3_000 }) },
  ),
  maxAttempts: fc.integer({ min: 1, max: 3 }),
  unique: sometimes(fc.nat({ max: 5 })),
  onDuplicate: fc.constantFrom('keep', 'replace', 'debounce'),
  group: sometimes(fc.constantFrom('g1', 'g2')),
  limitKey: sometimes(fc.constantFrom('k1', 'k2')),
  // Mostly none: jobs that wait for parents do nothing else for a long time.
  parents: fc.oneof(
    { weight: 4, arbitrary: fc.constant([]) },
    { weight: 1, arbitrary: fc.array(parent, { minLength: 1, maxLength: 3 }) },
  ),
  batch: sometimes(fc.nat({ max: 1_000 })),
  inside: fc.boolean(),
})

/** 1 of 12 calls names a parent that does not exist, and repeats happen as often. */
export const insertCommand: fc.Arbitrary<Command> = fc
  .record({ wishes: fc.array(wish, { minLength: 1, maxLength: 4 }), luck: fc.nat({ max: 11 }) })
  .map(({ wishes, luck }) =>
    command(`insert(${JSON.stringify(wishes)}, luck ${luck})`, async (program, store) => {
      // A holder that is due but not promoted yet would be in two minds about its place.
      await store.backend.jobs.promote(1_000)
      promoteDue(program.model, 1_000)
      const jobs = spell(program, wishes)
      const odd = { ...newJob(program), dependsOn: [{ parent: mintId(program) as JobId, onFailure: 'fail' as const }] }
      await insertBoth(program, store, luck === 0 ? [...jobs, odd] : jobs)
      if (luck === 1) await insertBoth(program, store, jobs)
    }),
  )

async function insertBoth({ model }: Program, { backend }: Store, jobs: readonly NewJob[]): Promise<void> {
  const before = model.jobs.map(({ id }) => id)
  const expected = insertJobs(model, jobs)
  const reply = await backend.jobs.insert(jobs)
  if (typeof expected === 'string') {
    expect(reply).toMatchObject({ ok: false, refusal: { code: expected } })
    expect(model.jobs.map(({ id }) => id)).toEqual(before)
  } else expect(reply).toEqual({ ok: true, results: expected })
}

function spell(program: Program, wishes: readonly Wish[]): readonly NewJob[] {
  const jobs: NewJob[] = []
  const taken: number[] = []
  for (const one of wishes) {
    // A key held for a time outlives a deleted holder: what a dependency on its duplicate means is left open.
    const lasting = jobs.filter((job) => job.unique?.mode !== 'for-a-time')
    const parents = [...program.model.jobs, ...lasting].map(({ id }) => id)
    const named = new Map(one.parents.map(({ which, onFailure }) => [pickFrom(parents, which), onFailure]))
    const dependsOn = [...named].flatMap(([parent, onFailure]) => (parent === undefined ? [] : [{ parent, onFailure }]))
    const unique = one.unique === null ? undefined : holdOf(one.unique, one.onDuplicate)
    const wanted = unique?.onDuplicate === 'debounce' ? one.delayMs + 500 : one.delayMs
    const delayMs = wanted === 0 ? 0 : freshDelay(program, wanted, taken)
    taken.push(delayMs)
    const batch = one.batch === null ? undefined : pickFrom(program.model.batches, one.batch)?.id
    jobs.push(
      newJob(program, {
        maxAttempts: one.maxAttempts,
        ...(delayMs > 0 && { delayMs }),
        ...(dependsOn.length > 0 && { dependsOn }),
        ...(batch !== undefined && { batch: batch satisfies BatchId, insideBatch: one.inside }),
        // Keys live in the queue without lines, at one priority: there a replaced job has nothing to lose.
        ...(unique === undefined ? unlimited(one) : { unique }),
      }),
    )
  }
  return jobs
}

function unlimited({ tight, priority, group, limitKey }: Wish): Partial<NewJob> {
  return {
    queue: tight ? 'tight' : 'free',
    priority,
    ...(group !== null && { group }),
    ...(limitKey !== null && { limitKey }),
  }
}

/** A key has one mode for all who use it. */
function holdOf(no: number, onDuplicate: UniqueHold['onDuplicate']): UniqueHold {
  const mode = (['until-started', 'until-finished', 'for-a-time'] as const)[no % 3]!
  return { key: `key-${no}`, mode, windowMs: 1_500, onDuplicate }
}
