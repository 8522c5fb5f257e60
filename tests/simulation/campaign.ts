// Many seeds: what they covered, which failed, and whether a failing one replays to the same trace.
import { EDGES } from '../../src/core/edges.ts'
import type { EdgeName } from '../../src/core/edges.ts'
import { PLANTED_BUGS, plant } from '../../src/core/planted.ts'
import type { PlantedBug } from '../../src/core/planted.ts'
import { FAILPOINTS } from '../../src/runtime/failpoints.ts'
import { HYBRID_NOTABLES, NOTABLES } from './checker.ts'
import { seedFor } from './focus.ts'
import { FAULT_KINDS, REDIS_FAULT_KINDS } from './faults.ts'
import { simulate } from './simulation.ts'
import type { SimResult, SimStore } from './simulation.ts'

export interface Failure {
  readonly seed: number
  readonly invariant: string
  readonly message: string
  readonly step: number
  readonly traceHash: string
  /** False: the replay took another way, so something outside the seed decided. */
  readonly replays: boolean
}

export interface Campaign {
  readonly seeds: number
  readonly steps: number
  readonly jobs: number
  readonly failures: readonly Failure[]
  readonly edges: Readonly<Record<string, number>>
  readonly faults: Readonly<Record<string, number>>
  readonly failpoints: Readonly<Record<string, number>>
  readonly notables: Readonly<Record<string, number>>
  /** Nothing of this kind happened in any seed. */
  readonly neverHit: readonly string[]
  readonly minimums: { readonly workers: number; readonly jobs: number; readonly faults: number }
}

/** The hybrid backend alone dispatches. */
const ELSEWHERE: ReadonlySet<EdgeName> = new Set<EdgeName>(['dispatch', 'undispatch'])
export const EXPECTED_EDGES = (Object.keys(EDGES) as EdgeName[]).filter((edge) => !ELSEWHERE.has(edge))
const isOfHybrid = (name: string): boolean => name.startsWith('hybrid')

export async function runCampaign(
  seeds: readonly number[],
  kind: SimStore = 'memory',
  onSeed: (result: SimResult) => void = () => undefined,
): Promise<Campaign> {
  const isHybrid = kind === 'hybrid'
  const edges = zeros(isHybrid ? Object.keys(EDGES) : EXPECTED_EDGES)
  const faults = zeros(isHybrid ? [...FAULT_KINDS, ...REDIS_FAULT_KINDS] : FAULT_KINDS)
  const failpoints = zeros(FAILPOINTS.filter((point) => isHybrid || !isOfHybrid(point)))
  const notables = zeros(isHybrid ? [...NOTABLES, ...HYBRID_NOTABLES] : NOTABLES)
  const minimums = { workers: Infinity, jobs: Infinity, faults: Infinity }
  const failures: Failure[] = []
  let steps = 0
  let jobs = 0
  for (const seed of seeds) {
    const result = await simulate(seed, false, kind)
    onSeed(result)
    steps += result.steps
    jobs += result.jobs
    addTo(edges, result.edges)
    addTo(faults, result.faults)
    addTo(failpoints, result.failpoints)
    addTo(notables, result.notables)
    if (result.violation !== null) failures.push(await replayed(result, kind))
    else {
      minimums.workers = Math.min(minimums.workers, result.workers)
      minimums.jobs = Math.min(minimums.jobs, result.jobs)
      minimums.faults = Math.min(minimums.faults, sum(result.faults))
    }
  }
  const neverHit = [edges, faults, failpoints, notables].flatMap((counts) =>
    Object.keys(counts).filter((name) => counts[name] === 0),
  )
  return { seeds: seeds.length, steps, jobs, failures, edges, faults, failpoints, notables, neverHit, minimums }
}

async function replayed(result: SimResult, kind: SimStore): Promise<Failure> {
  const again = await simulate(result.seed, false, kind)
  const { invariant, message } = result.violation ?? { invariant: '', message: '' }
  const replays = again.traceHash === result.traceHash && again.steps === result.steps
  return { seed: result.seed, invariant, message, step: result.steps, traceHash: result.traceHash, replays }
}

export interface Planted {
  readonly bug: PlantedBug
  readonly foundAtSeed: number | null
  /** How many seeds were asked. */
  readonly asked: number
  readonly invariant: string | null
}

/** Switches one bug on at a time and looks for the first seed that notices. The simulation does not know which. */
export async function findPlanted(
  seedsMax: number,
  onBug: (planted: Planted) => void,
  bugs: readonly PlantedBug[] = PLANTED_BUGS,
): Promise<readonly Planted[]> {
  const found: Planted[] = []
  for (const bug of bugs) {
    const planted = await findOne(bug, seedsMax)
    onBug(planted)
    found.push(planted)
  }
  return found
}

export async function findOne(bug: PlantedBug, seedsMax: number): Promise<Planted> {
  plant(bug)
  try {
    for (let asked = 1; asked <= seedsMax; asked++) {
      const seed = seedFor(bug, asked)
      const { violation } = await simulate(seed, false, isOfHybrid(bug) ? 'hybrid' : 'memory')
      if (violation !== null) return { bug, foundAtSeed: seed, asked, invariant: violation.invariant }
    }
    return { bug, foundAtSeed: null, asked: seedsMax, invariant: null }
  } finally {
    plant(undefined)
  }
}

function zeros(names: readonly string[]): Record<string, number> {
  return Object.fromEntries(names.map((name) => [name, 0]))
}

function addTo(counts: Record<string, number>, hits: ReadonlyMap<string, number>): void {
  for (const [name, count] of hits) counts[name] = (counts[name] ?? 0) + count
}

function sum(hits: ReadonlyMap<string, number>): number {
  let total = 0
  for (const count of hits.values()) total += count
  return total
}
