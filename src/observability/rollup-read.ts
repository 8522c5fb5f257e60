// Reading notes of minutes and hours, and putting them to the points of a chart.
import type { JsonText } from '../core/json.ts'
import type { NoteStore } from '../store/note-store.ts'

export interface Span {
  readonly fromMs: number
  readonly toMs: number
  readonly stepMs: number
  readonly points: number
}

const PAGE = 200

/** From one key up to another, without it; what cannot be read is left out. */
export async function readNotes<Value>(
  notes: NoteStore,
  space: string,
  [fromKey, toKey]: readonly [fromKey: string, toKey: string],
  decode: (text: JsonText) => Value | null,
  most = Infinity,
): Promise<readonly { readonly key: string; readonly value: Value }[]> {
  const found: { readonly key: string; readonly value: Value }[] = []
  // Lists begin after their cursor, and no key ends before its Z.
  let cursor = fromKey.slice(0, -1)
  for (;;) {
    const page = await notes.list(space, PAGE, cursor)
    for (const { key, value: text } of page) {
      if (key >= toKey || found.length >= most) return found
      const value = decode(text)
      if (value !== null) found.push({ key, value })
    }
    const end = page.at(-1)?.key
    if (page.length < PAGE || end === undefined) return found
    cursor = end
  }
}

/** By the beginning of each point; one of which nothing was seen is absent. */
export function byPoint<Seen extends { readonly atMs: number }>(
  seen: readonly Seen[],
  { fromMs, stepMs }: Span,
): ReadonlyMap<number, readonly Seen[]> {
  const points = new Map<number, Seen[]>()
  for (const one of seen) {
    const pointMs = fromMs + Math.floor((one.atMs - fromMs) / stepMs) * stepMs
    const known = points.get(pointMs)
    if (known === undefined) points.set(pointMs, [one])
    else known.push(one)
  }
  return points
}
