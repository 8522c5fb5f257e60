// Switching the autoscaler off and on while everything runs: for all queues, or for one. A note says that it is off;
// the leader reads it at its next look. What is off stays at its size, and can still be forced.
import { SCALING } from '../core/limits.ts'
import { checkName } from '../core/names.ts'
import type { NoteStore } from '../store/note-store.ts'

export const SWITCH_SPACE = 'scaling-switch'
const ALL = '*'

export interface ScalingSwitches {
  /** Of a queue. */
  isOff(queue: string): boolean
  /** Queues that are off; `*` is all. */
  readonly off: readonly string[]
}

/** `queue` null: all queues. Switching all on again leaves those off that were switched off one by one. */
export async function switchScaling(notes: NoteStore, queue: string | null, isOn: boolean): Promise<void> {
  const key = queue === null ? ALL : checkName(queue, 'queue')
  if (isOn) await notes.remove(SWITCH_SPACE, key)
  else await notes.put({ space: SWITCH_SPACE, key, value: '"off"' })
}

export async function readSwitches(notes: NoteStore): Promise<ScalingSwitches> {
  const off = (await notes.list(SWITCH_SPACE, SCALING.switchesMax)).map(({ key }) => key)
  const all = new Set(off)
  return { off, isOff: (queue) => all.has(ALL) || all.has(queue) }
}
