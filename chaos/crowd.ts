// More long jobs than there are slots: others wait behind them, so that a store that forgets has something to forget.
import { wait } from './scenario.ts'
import type { Stage } from './stage.ts'

const LONG_JOBS = 60
const LONG_MS = 1_000

export async function crowd({ enqueue }: Stage): Promise<void> {
  await Promise.all(Array.from({ length: LONG_JOBS }, () => enqueue({ longMs: LONG_MS })))
  await wait(LONG_MS / 2)
}
