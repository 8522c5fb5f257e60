// Processes that die between the commit in PostgreSQL and the push to Redis: only the hybrid has such a moment.
import { uuidv7 } from 'uuidv7'
import { until } from '../../tests/postgres/faults/until.ts'
import { writeLine } from '../books.ts'
import { query } from '../query.ts'
import type { Scenario } from '../scenario.ts'
import type { Stage } from '../stage.ts'
import { KIND, QUEUE } from '../systems/millrace.ts'
import { HELD } from '../through-redis.ts'

export const HYBRID_SCENARIOS: readonly Scenario[] = [
  {
    name: 'relay-killed',
    says: 'the relay dies after it has minted a token in PostgreSQL and before it reaches Redis',
    backends: ['hybrid'],
    isForPeers: false,
    async strike(stage) {
      // It was the first, so it leads.
      const victim = stage.workers[0]!
      victim.tell('die')
      const id = await enqueueReady(stage)
      await until(() => !victim.isAlive, 'the relay to die')
      const atMs = Date.now()
      await onlyInPostgres(stage, [id])
      await stage.startWorker()
      return { atMs, backMs: Date.now(), robbed: [{ pid: victim.pid, atMs }] }
    },
    promise: { rerunMin: 1 },
  },
  {
    name: 'producer-killed',
    says: 'a producer dies after the commit in PostgreSQL and before the push to Redis',
    backends: ['hybrid'],
    isForPeers: false,
    async strike(stage) {
      const victim = stage.producers[0]!
      victim.tell('die')
      await until(() => !victim.isAlive, 'the producer to die')
      const atMs = Date.now()
      const { asked, acked } = stage.books()
      await onlyInPostgres(
        stage,
        [...asked.keys()].filter((id) => !acked.has(id)),
      )
      await stage.startProducer()
      return { atMs, backMs: Date.now(), robbed: [] }
    },
  },
]

/** A job that is ready in PostgreSQL and needs the relay. */
async function enqueueReady({ place, files }: Stage): Promise<string> {
  const id = uuidv7()
  writeLine(files.ledger, 'asked', id, Date.now())
  await query(
    place,
    `select millrace.insert_one($1, $2, $3, '{"longMs":0}', 30000, null, 5, null, null, null, null, null)`,
    [id, QUEUE, KIND],
  )
  writeLine(files.ledger, 'acked', id, Date.now())
  return id
}

/** Some of these jobs were minted, and Redis has no token of them. */
async function onlyInPostgres({ place, servers }: Stage, ids: readonly string[]): Promise<void> {
  const rows = await query<{ field: string }>(
    place,
    `select id || ':' || lease as field from millrace.running where worker_no = 0 and id = any($1)`,
    [ids],
  )
  if (rows.length === 0) throw new Error('nothing was minted at the moment of death')
  for (const { field } of rows) {
    if ((await servers.redis.command('HGET', HELD, field)) !== null) throw new Error(`the token ${field} was pushed`)
  }
}
