// The ledger of the hybrid over SQL: what its rules need of PostgreSQL beyond a backend. Guards are compared in SQL
// (sql/65 … 68), one statement per call; `store.connections` are those whose statements end after 5 seconds.
import type { JobId, WorkerId } from '../../core/job.ts'
import type { JsonText } from '../../core/json.ts'
import type { Transition } from '../../core/transition.ts'
import { TOKEN_BODY_MAX } from './ledger-port.ts'
import type { DispatchNews, Ledger, RelayReply, SettleReply } from './ledger-port.ts'
import { changeRow } from './change-rows.ts'
import { parseClaimed, parseHead } from './claim-rows.ts'
import type { CycleHead } from './claim-rows.ts'
import { ringFinished, settleValues, splitSettle, verdictsOf } from './cycle.ts'
import type { SettleParts } from './cycle.ts'
import { createInside } from './inside.ts'
import { newsOf, inOrder, parseNews, refArrays, refOf } from './ledger-rows.ts'
import type { NewsJson } from './ledger-rows.ts'
import { createMint } from './mint.ts'
import type { Row } from './row.ts'
import { SESSION_SQL, sessionLedger } from './session-ledger.ts'
import { prepared, statement } from './store.ts'
import type { PostgresStore } from './store.ts'
import { createUnmarkedWalk } from './unmarked.ts'
import { bigintArray, intArray, textArray, uuidArray } from './wire.ts'

interface RelayHead extends CycleHead {
  readonly refused?: never
  readonly backlog?: readonly [boolean, boolean, boolean]
}

export function postgresLedger(store: PostgresStore): Ledger {
  const { connections, doorbell } = store
  const call = (what: string, sql: string) => prepared(store, `ledger.${what}`, sql)
  const register = call('register', 'select millrace.register_worker($1, $2, $3, $4, $5, true)')
  const dispatch = call('dispatch', 'select millrace.dispatch_of($1)')
  const flip = call('flip', 'select flipped, rings from millrace.flip_queues($1, $2, $3, $4, $5, $6)')
  const born = call('born', 'select millrace.bear_epoch($1, $2, $3)')
  const renew = call('renewServer', 'select millrace.renew_server()')
  const relay = call('relay', 'select * from millrace.relay_jobs($1, $2, $3, $4)')
  const settling = statement(store, 'ledger.settle', 'select millrace.settle_jobs($1, $2, $3, $4, $5, $6)')
  const confirm = call('confirm', 'select job_id, lease from millrace.confirm_runs($1, $2, $3, $4)')
  const bodies = call('bodies', 'select id, payload from millrace.payloads_of($1)')
  const requeue = call('requeue', 'select moved, rings from millrace.requeue_runs($1, $2, $3, $4)')
  const giveBack = call('giveBack', 'select moved, rings from millrace.give_back($1, $2, $3)')
  const bequeath = call('bequeath', 'select millrace.bequeath_runs($1, $2, $3)')
  const notAlive = call('notAlive', NOT_ALIVE_SQL)
  const leaseMark = call('leaseMark', LEASE_MARK_SQL)
  const walk = createUnmarkedWalk(store)
  const settleRevoked = call('settleRevoked', 'select verdict, rings from millrace.settle_revoked($1, $2, $3, $4)')
  const flagCancel = call('flagCancel', 'select flagged, rings from millrace.flag_cancel($1, $2, $3, $4)')
  const inside = createInside(store.schema)
  const beat = statement(store, 'ledger.beat', SESSION_SQL.beat)
  const mark = statement(store, 'ledger.mark', SESSION_SQL.mark)

  /** Of functions that answer how many rows they moved, and whom to tell. */
  function movedOf([row]: readonly Row[]): number {
    doorbell.ringAll(row?.[1])
    return Number(row?.[0] ?? 0)
  }

  return {
    ...sessionLedger((what, values) =>
      what === 'beat' ? connections.beat(beat, values) : connections.run(mark, values),
    ),
    close: async () => undefined, // the connections are the store's
    async register({ id, host, pid, queues, concurrency }) {
      await register(id, host, pid, textArray(queues), concurrency)
    },
    async dispatch(queues) {
      const [row] = await dispatch(queues === undefined ? null : textArray(queues))
      return parseNews(row?.[0])
    },
    async flip({ queues, mode, redisId, unlessHealthy, above }) {
      const names = textArray(queues.map(({ queue }) => queue))
      const expected = bigintArray(queues.map((one) => one.expected))
      const [row] = await flip(names, expected, mode, redisId, unlessHealthy, above ?? 0)
      doorbell.ringAll(row?.[1])
      return parseNews(row?.[0]).rows
    },
    async born(queue, epoch, birth) {
      return (await born(queue, epoch, birth))[0]?.[0] === 't'
    },
    async renewServer() {
      await renew()
    },

    insert: createMint(store),
    async relay(queue, tag, rooms): Promise<RelayReply> {
      const rows = await relay(queue, tag, intArray(rooms), TOKEN_BODY_MAX)
      const head = parseHead(rows[0]) as RelayHead // written by millrace.relay_jobs
      const refused = refusalOf(rows[0])
      if (refused !== null) return { jobs: [], backlog: [false, false, false], refused }
      const minted = parseClaimed(rows, head, [queue])
      const jobs = minted.toSorted((a, b) => a.job.priority - b.job.priority || a.seq - b.seq).map(({ job }) => job)
      return { jobs, backlog: head.backlog!, refused: null }
    },

    async settle(worker, transitions): Promise<SettleReply> {
      if (transitions.length === 0) return { verdicts: [], dispatched: [] }
      const parts = splitSettle(transitions)
      const values = [...settleValues(parts, () => worker), worker]
      const rows = await (worker === null
        ? connections.run(settling, values)
        : connections.runOrdered(worker, settling, values))
      const head = parseHead(rows[0])
      doorbell.ringAll(head.rings)
      const verdicts = verdictsOf(transitions, parts, head)
      if (doorbell.hasWatchers) ringFinished(store, transitions, verdicts)
      return { verdicts, dispatched: dispatchedOf(parts, head) }
    },
    inside: (tx, workerOf) =>
      inside(tx, ({ jobId, guard: { lease } }) => (lease === undefined ? null : workerOf({ jobId, lease }))),
    async confirm(worker, refs, leaseMs) {
      if (refs.length === 0) return []
      const visibleMs = leaseMs === undefined ? null : Math.ceil(leaseMs)
      return (await confirm(worker, ...refArrays(inOrder(refs)), visibleMs)).map(refOf)
    },
    async bodies(ids) {
      const rows = ids.length === 0 ? [] : await bodies(uuidArray(ids))
      return new Map(rows.map((row) => [row[0] as JobId, row[1] as JsonText])) // by their columns
    },

    async requeue(queue, epoch, refs) {
      return refs.length === 0 ? 0 : movedOf(await requeue(queue, epoch, ...refArrays(inOrder(refs))))
    },
    requeueOld: (queue, epoch, most) => walk.requeueOld(queue, epoch, most),
    async giveBack(worker, refs) {
      return refs.length === 0 ? 0 : movedOf(await giveBack(worker, ...refArrays(inOrder(refs))))
    },
    async bequeath(dead, refs) {
      return refs.length === 0 ? 0 : Number((await bequeath(dead, ...refArrays(inOrder(refs))))[0]?.[0] ?? 0)
    },
    async notAlive(workers) {
      if (workers.length === 0) return []
      return (await notAlive(textArray(workers))).map((row) => row[0] as WorkerId) // a worker id by its column
    },

    async leaseMark() {
      const [row] = await leaseMark()
      return { next: Number(row?.[0]), server: row?.[1] ?? '' }
    },
    unmarked: (queue, after, below, most) => walk.unmarked(queue, after, below, most),

    async settleRevoked(transition: Transition, lease, barrierOf) {
      const change = JSON.stringify(changeRow(transition))
      const [row] = await settleRevoked(change, lease, barrierOf?.queue ?? null, barrierOf?.epoch ?? null)
      doorbell.ringAll(row?.[1])
      return row?.[0] as Awaited<ReturnType<Ledger['settleRevoked']>> // the words of core/transition.ts
    },
    async flagCancel({ jobId, lease }, worker, thenRemove) {
      const [row] = await flagCancel(jobId, lease, worker, thenRemove)
      doorbell.ringAll(row?.[1])
      return row?.[0] === 't'
    },
  }
}

const NOT_ALIVE_SQL = `select i.id from unnest($1::text[]) with ordinality as i(id, position)
  where not exists (select 1 from millrace.workers w where w.id = i.id and w.is_alive) order by i.position`

const LEASE_MARK_SQL = `select s.last_value + case when s.is_called then 1 else 0 end, millrace.pg_identity()
  from millrace.lease_seq s`

function refusalOf(row: Row | undefined): DispatchNews | null {
  // Written by millrace.relay_jobs; the rows of a queue that does not exist are none.
  const head = JSON.parse(row?.[0] ?? '{}') as { readonly refused?: NewsJson | null }
  return head.refused === undefined ? null : newsOf(head.refused)
}

/** Only changes without a lease are refused so; they are never among the plain completions. */
function dispatchedOf({ rest }: SettleParts, { verdicts = [] }: CycleHead): SettleReply['dispatched'] {
  return verdicts.flatMap((verdict, index) => {
    const [word, lease, queue = ''] = verdict.split(' ')
    return word === 'dispatched' ? [{ index: rest[index]!, queue, lease: Number(lease) as never }] : []
  })
}
