// The test of the tests: each planted bug breaks one rule in the real code, and the simulation must notice.
import { expect, test } from 'vitest'
import { PLANTED_BUGS, isPlanted } from '../../src/core/planted.ts'
import { findOne } from './campaign.ts'

/** Guards of the hybrid need many seeds: `npm run sim -- --planted --bug hybrid`. These are found soon. */
const SOON: readonly string[] = [
  'hybrid-barrier-ignored',
  'hybrid-claims-unmarked',
  'hybrid-pusher-ignored',
  'hybrid-reap-live',
  'hybrid-floor-ignored',
]
const bugs = PLANTED_BUGS.filter((bug) => !bug.startsWith('hybrid') || SOON.includes(bug))

test.each(bugs)(
  'the simulation finds the planted bug %s within 500 seeds',
  async (bug) => {
    const { foundAtSeed } = await findOne(bug, 500)
    expect(foundAtSeed).not.toBeNull()
    expect(isPlanted(bug)).toBe(false)
  },
  180_000,
)
