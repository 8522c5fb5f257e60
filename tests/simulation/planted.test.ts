// The test of the tests: each planted bug breaks one rule in the real code, and the simulation must notice.
import { expect, test } from 'vitest'
import { PLANTED_BUGS, isPlanted } from '../../src/core/planted.ts'
import { findOne } from './campaign.ts'

/** With seeds that look at the kind of trouble the bug is about. */
const HYBRID_SEEDS = 120

test.each(PLANTED_BUGS)(
  'the simulation finds the planted bug %s',
  async (bug) => {
    const { foundAtSeed } = await findOne(bug, bug.startsWith('hybrid') ? HYBRID_SEEDS : 500)
    expect(foundAtSeed).not.toBeNull()
    expect(isPlanted(bug)).toBe(false)
  },
  180_000,
)
