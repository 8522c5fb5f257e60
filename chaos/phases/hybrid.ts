// Processes that die between the commit in PostgreSQL and the push to Redis: only the hybrid has such a moment.
import { uuidv7 } from 'uuidv7'
import { until } from '../../tests/postgres/faults/until.ts'
import { writeLine } from '../books.ts'
import { query } from '../query.ts'
import type { Scenario } from '../scenario.ts'
import type { Stage } from '../stage.ts'
import { KIND, QUEUE } from '../systems/millrace.ts'
import { heldKey } from '../through-redis.ts'

export const HYBRID_SCENARIOS: readonly Scenario[] = [
  {
    name: 'relay-killed',
    says: 'the relay dies after it has minted a token in PostgreSQL and before it reaches Redis',
    backends: ['hybrid'],
    peers: 'never',
    interrupts: true,
    async strike(stage) {
      // It was the first, so it leads.
      const victim = stage.workers[0]!
      victim.tell({ at: 'hybrid.relay-minted', signal: 'SIGKILL' })
      await enqueueReady(stage)
      await until(() => !victim.isAlive, 'the relay to die')
      const atMs = Date.now()
      await onlyInPostgres(stage)
      await stage.startWorker()
      return { atMs, backMs: Date.now(), robbed: [{ pid: victim.pid, fromMs: atMs, toMs: atMs }] }
    },
  },
  {
    name: 'producer-killed',
    says: 'a producer dies after the commit in PostgreSQL and before the push to Redis',
    backends: ['hybrid'],
    peers: 'never',
    async strike(stage) {
      const victim = stage.producers[0]!
      victim.tell({ at: 'hybrid.before-push', signal: 'SIGKILL' })
      await until(() => !victim.isAlive, 'the producer to die')
      const atMs = Date.now()
      await onlyInPostgres(stage)
      await stage.startProducer()
      return { atMs, backMs: Date.now(), robbed: [] }
    },
  },
]

/** A job that is ready in PostgreSQL and needs the relay. */
async function enqueueReady({ place, files }: Stage): Promise<void> {
  const id = uuidv7()
  writeLine(files.ledger, 'asked', id, Date.now())
  await query(
    place,
    `select millrace.insert_one($1, $2, $3, '{"longMs":0}', 30000, null, 5, null, null, null, null, null)`,
    [id, QUEUE, KIND],
  )
  writeLine(files.ledger, 'acked', id, Date.now())
}

/** Some jobs were minted, and Redis has no token of them. Looked for twice: a job may end between two looks. */
async function onlyInPostgres(stage: Stage): Promise<void> {
  const first = await unpushed(stage)
  const second = new Set(await unpushed(stage))
  if (!first.some((field) => second.has(field))) throw new Error('nothing was minted at the moment of death')
}

async function unpushed({ place, servers }: Stage): Promise<readonly string[]> {
  const rows = await query<{ queue: string; field: string }>(
    place,
    `select q.name as queue, r.id || ':' || r.lease as field
     from millrace.running r join millrace.job_bodies b on b.id = r.id join millrace.job_queues q on q.id = b.queue_id
     where r.worker_no = 0`,
  )
  const found: string[] = []
  for (const { queue, field } of rows) {
    if ((await servers.redis.command('HGET', heldKey(queue), field)) === null) found.push(field)
  }
  return found
}
