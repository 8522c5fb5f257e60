// The promises of docs/backend-contract.md as tests: one suite, a function of a backend factory.
import { describe, test } from 'vitest'
import type { Backend } from '../../src/store/ports.ts'
import { applyEdges } from './apply-edges.ts'
import { applyStale } from './apply-stale.ts'
import { applyVerdicts } from './apply-verdicts.ts'
import { audit } from './audit.ts'
import { batches } from './batches.ts'
import { bulk } from './bulk.ts'
import { cancelAndRemove } from './cancel-and-remove.ts'
import { claim } from './claim.ts'
import { concurrency } from './concurrency.ts'
import { crossings } from './crossings.ts'
import { dependencies } from './dependencies.ts'
import { groups } from './groups.ts'
import { insert } from './insert.ts'
import { lifecycle } from './lifecycle.ts'
import type { TestClock } from './manual-clock.ts'
import { notes } from './notes.ts'
import { pause } from './pause.ts'
import { priority } from './priority.ts'
import { promote } from './promote.ts'
import { prune } from './prune.ts'
import { query } from './query.ts'
import { queues } from './queues.ts'
import { rate } from './rate.ts'
import { replay } from './replay.ts'
import { schedules } from './schedules.ts'
import { skipReasons } from './skips.ts'
import type { Skip } from './skips.ts'
import { slots } from './slots.ts'
import { uniqueDuplicates } from './unique-duplicates.ts'
import { uniqueRelease } from './unique-release.ts'
import { visibility } from './visibility.ts'
import { handOvers } from './hand-overs.ts'
import { wakeups } from './wakeups.ts'
import { workers } from './workers.ts'
import { createWorld } from './world.ts'
import type { Setup, World } from './world.ts'

export interface TestStore {
  readonly backend: Backend
  readonly clock: TestClock
  readonly close: () => Promise<void>
}

export interface BackendSuite {
  readonly name: string
  /** A fresh, empty, started store. */
  readonly create: () => Promise<TestStore>
  readonly skips?: readonly Skip[]
  /** Only these, for a second look at a backend that passes all of them. */
  readonly areas?: readonly string[]
}

const AREAS: Readonly<Record<string, (setup: Setup) => void>> = {
  crossings,
  lifecycle,
  queues,
  insert,
  bulk,
  claim,
  priority,
  'apply: edges': applyEdges,
  'apply: verdicts': applyVerdicts,
  'apply: stale leases': applyStale,
  audit,
  'cancel and remove': cancelAndRemove,
  replay,
  'unique: duplicates': uniqueDuplicates,
  'unique: release': uniqueRelease,
  dependencies,
  groups,
  slots,
  rate,
  batches,
  schedules,
  workers,
  visibility,
  notes,
  query,
  wakeups,
  'hand-overs': handOvers,
  'promote and time': promote,
  prune,
  pause,
  concurrency,
}

export const AREA_NAMES: readonly string[] = Object.keys(AREAS)

interface Registered {
  readonly area: string
  readonly title: string
  readonly run: (world: World) => Promise<void>
}

export function backendSuite({ name, create, skips = [], areas = AREA_NAMES }: BackendSuite): void {
  const registered: Registered[] = []
  for (const [area, register] of Object.entries(AREAS)) {
    register({ test: (title, run) => void registered.push({ area, title, run }) })
  }
  const reasons = skipReasons(
    registered.map(({ title }) => title),
    skips,
  )
  describe(name, () => {
    for (const area of areas) {
      describe(area, () => {
        for (const { title, run } of registered.filter((one) => one.area === area)) {
          const reason = reasons.get(title)
          if (reason === undefined) test(title, () => withStore(create, run))
          else test.skip(`${title} (skipped: ${reason})`)
        }
      })
    }
  })
}

async function withStore(create: BackendSuite['create'], run: (world: World) => Promise<void>): Promise<void> {
  const { backend, clock, close } = await create()
  try {
    await run(createWorld(backend, clock))
  } finally {
    await close()
  }
}
