// How long the rest of a run will take: as much as the same cells took once, by as much as those played today took longer.
export interface PlayedCell {
  readonly key: string
  readonly seconds: number
}

/** Where nobody knows: the mean of a usual run. */
const CELL_S = 20

export function secondsLeft(
  left: readonly string[],
  played: readonly PlayedCell[],
  known: ReadonlyMap<string, number>,
): number {
  const once = (keys: readonly string[]): number => keys.reduce((sum, key) => sum + (known.get(key) ?? CELL_S), 0)
  const thenS = once(played.map(({ key }) => key))
  const nowS = played.reduce((sum, { seconds }) => sum + seconds, 0)
  return once(left) * (thenS === 0 ? 1 : nowS / thenS)
}
