// The disk of PostgreSQL is full: it answers, and can write nothing that needs more room.
import { onSmallDisk } from '../own-stores.ts'
import { refusals, refusesEnqueues, unclear } from '../refusals.ts'
import { wait } from '../scenario.ts'
import type { Scenario } from '../scenario.ts'

const RESUME_MAX_S = 10

export const DISK_SCENARIOS: readonly Scenario[] = [
  {
    name: 'disk-full',
    says: 'the disk of PostgreSQL (a tmpfs of 256 MB) is filled to the last byte, and emptied a phase after the first refusal',
    backends: ['postgres', 'hybrid'],
    peers: 'asked',
    isMissing: () => (process.getuid?.() === 0 ? undefined : 'it mounts a disk, which only root may'),
    stores: onSmallDisk,
    async strike(stage, { phaseMs }) {
      const { disk } = stage.own!
      const before = refusals(stage).length
      const atMs = Date.now()
      disk!.fill()
      await refusesEnqueues(stage, before)
      await wait(phaseMs)
      disk!.free()
      const flaws = unclear(refusals(stage), before, /disk full/)
      return { atMs, backMs: Date.now(), robbed: [], flaws }
    },
    promise: { recoveryMaxS: RESUME_MAX_S },
  },
]
