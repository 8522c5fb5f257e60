// What the leader of the autoscaler has decided for a pool, as a note that the supervisors follow. One note holds all
// that must change together: the total, the shares, and the last steps with their times, from which the next leader
// knows the cooldown. The history is written after it, from these steps, and may be written twice.
import type { ScaleMetrics } from '../core/scaling.ts'
import type { NoteStore } from '../store/note-store.ts'
import { PLAN_SPACE } from './scaling-plan.ts'
import type { ScalingPlan } from './scaling-plan.ts'

const PAGE = 100

export interface ScaleEvent {
  readonly id: string
  /** Whose word it was; null: the bounds of the hosts or of the fleet. */
  readonly queue: string | null
  readonly pool: string
  readonly action: 'up' | 'down'
  readonly from: number
  readonly to: number
  readonly reasons: readonly string[]
  /** Of that queue when it was decided; null: none were needed. */
  readonly metrics: ScaleMetrics | null
  readonly atMs: number
  /** Who forced it. */
  readonly forcedBy?: string
  readonly requestId?: string
}

/** What supervisors follow, and what only leaders read. */
export interface PlanNote extends ScalingPlan {
  /** Of the leader who wrote it. */
  readonly term: number
  /** The last steps, oldest first. */
  readonly recent: readonly ScaleEvent[]
}

export interface StoredPlan {
  readonly plan: PlanNote
  readonly version: number
}

/** How many steps a plan carries. */
export const RECENT_MAX = 3

export async function readPlan(notes: NoteStore, pool: string): Promise<StoredPlan | null> {
  const note = await notes.get(PLAN_SPACE, pool)
  if (note === null) return null
  const plan = decodePlan(note.value, pool)
  return { plan, version: note.version }
}

export async function readPlans(notes: NoteStore, limit: number): Promise<readonly StoredPlan[]> {
  const found: StoredPlan[] = []
  let cursor: string | undefined
  while (found.length < limit) {
    const page = await notes.list(PLAN_SPACE, Math.min(PAGE, limit - found.length), cursor)
    for (const { key, value, version } of page) found.push({ plan: decodePlan(value, key), version })
    cursor = page.at(-1)?.key
    if (page.length < PAGE) break
  }
  return found
}

/** What cannot be read is a plan of nobody: it is written over, and the pool begins at its minimum. */
function decodePlan(text: string, pool: string): PlanNote {
  const value = parsed(text)
  const { total, shares, reasons, decidedAtMs, term, recent } = value
  return {
    pool,
    total: isCount(total) ? total : 0,
    shares: sharesOf(shares),
    reasons: Array.isArray(reasons) ? reasons.map(String) : [],
    decidedAtMs: Number.isFinite(decidedAtMs) ? (decidedAtMs as number) : 0, // just checked
    term: isCount(term) ? term : 0,
    recent: Array.isArray(recent) ? recent.flatMap((one) => decodeEvent(one) ?? []) : [],
  }
}

export function decodeEvent(value: unknown): ScaleEvent | null {
  const event = value as Partial<ScaleEvent> | null // checked below as far as it is used
  if (event === null || typeof event !== 'object') return null
  const { id, pool, action, from, to, atMs, reasons } = event
  const isNamed = typeof id === 'string' && typeof pool === 'string' && (action === 'up' || action === 'down')
  if (!isNamed || !isCount(from) || !isCount(to) || !Number.isFinite(atMs) || !Array.isArray(reasons)) return null
  return { ...(event as ScaleEvent), queue: event.queue ?? null, metrics: event.metrics ?? null }
}

export function parsed(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {}
  } catch {
    return {}
  }
}

function sharesOf(value: unknown): Readonly<Record<string, number>> {
  if (typeof value !== 'object' || value === null) return {}
  return Object.fromEntries(Object.entries(value).filter((entry): entry is [string, number] => isCount(entry[1])))
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}
