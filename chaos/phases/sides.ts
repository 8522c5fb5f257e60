// Faults that are aimed at what happens beside the load: a large batch whose jobs die with their workers, and leaders of
// maintenance that die, or are away, at the very moment of a tick.
import { readFileSync } from 'node:fs'
import { until } from '../../tests/postgres/faults/until.ts'
import { inBooks } from '../books.ts'
import { wholeBatch } from '../checks/side.ts'
import type { Robbed } from '../checks/delivery.ts'
import type { Ambush } from '../protocol.ts'
import { wait } from '../scenario.ts'
import type { Scenario } from '../scenario.ts'
import type { Member, Stage } from '../stage.ts'
import { robbedNow } from './workers.ts'

const EVERYWHERE = ['postgres', 'redis', 'hybrid'] as const
const BATCH = 'large'
const MEMBER_MS = 20
const KILLS = 3
/** All within one ttl: a job is in two of them at most, since a third would make a pill of it (docs/reliability-model.md). */
const KILL_EVERY_TTLS = 0.3
/** From one leader to the next, and to its first tick. */
const AMBUSH_MAX_MS = 30_000
/** So long is a leader away, in ttls: others have taken the lead, and taken it for dead. */
const AWAY_TTLS = 1.2
const AT_TICK = 'scheduler.before-fire'

export const SIDE_SCENARIOS: readonly Scenario[] = [
  {
    name: 'batch-killed',
    says: 'a batch of ten thousand jobs is worked off while three workers get SIGKILL, one after the other, within one ttl',
    backends: EVERYWHERE,
    peers: 'never',
    interrupts: true,
    async strike({ system, place, files, workers, startWorker }, { batchJobs, ttlMs }) {
      const batch = { name: BATCH, size: batchJobs, longMs: MEMBER_MS }
      await inBooks(files.ledger, batch, () => system.enqueueBatch!(place, batch)) // ours has it
      const robbed: Robbed[] = []
      for (let no = 0; no < KILLS; no += 1) {
        const victim = workers.at(-1)!
        victim.signal('SIGKILL')
        robbed.push(robbedNow(victim.pid))
        await startWorker()
        await wait(ttlMs * KILL_EVERY_TTLS)
      }
      const findings = (_: unknown, side: Parameters<typeof wholeBatch>[0]): ReturnType<typeof wholeBatch> =>
        wholeBatch(side, BATCH, batchJobs)
      return { atMs: robbed[0]!.fromMs, backMs: Date.now(), robbed, findings }
    },
    // As in repeated-kill: who was in two killed processes runs alone.
    promise: { recoveryMaxS: 20 },
  },
  {
    name: 'leader-at-tick',
    says: 'the leader of maintenance gets SIGKILL when it is about to fire a tick, the next one too, and the third is stopped there (SIGSTOP) until others have fired it, and goes on',
    backends: EVERYWHERE,
    peers: 'never',
    async strike(stage, { ttlMs }) {
      const robbed: Robbed[] = []
      const atMs = Date.now()
      for (let no = 0; no < 2; no += 1) {
        const victim = await ambush(stage, { at: AT_TICK, signal: 'SIGKILL' }, ({ isAlive }) => !isAlive)
        robbed.push(robbedNow(victim.pid))
        await stage.startWorker()
      }
      const away = await ambush(stage, { at: AT_TICK, signal: 'SIGSTOP' }, isStopped)
      robbed.push(robbedNow(away.pid))
      await wait(ttlMs * AWAY_TTLS)
      away.signal('SIGCONT')
      const findings = () => ({ figures: { leadersStruck: robbed.length }, broken: [] })
      return { atMs, backMs: Date.now(), robbed, findings }
    },
    // The interrupted jobs of the first wait for its ttl, those of the last for the end of its absence at most.
    promise: { recoveryMaxS: 20 },
  },
]

/** Only who leads comes by there: whoever is hit first was the leader, and the others are left alone. */
async function ambush(
  { workers }: Pick<Stage, 'workers'>,
  told: Ambush,
  isHit: (member: Member) => boolean,
): Promise<Member> {
  const alive = workers.filter(({ isAlive }) => isAlive)
  for (const member of alive) member.tell(told)
  await until(() => alive.some(isHit), 'a leader to be hit at a tick', { limitMs: AMBUSH_MAX_MS })
  const victim = alive.find(isHit)!
  for (const member of alive) if (member !== victim) member.tell('spare')
  return victim
}

function isStopped({ pid }: Member): boolean {
  // After the name of the program, which may hold spaces.
  return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)!.startsWith('T')
}
