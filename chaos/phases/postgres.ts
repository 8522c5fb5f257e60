// What happens to PostgreSQL: restarted, its backends ended, its snapshot held, its connections taken, its tables read.
import type pg from 'pg'
import { until } from '../../tests/postgres/faults/until.ts'
import { wait } from '../scenario.ts'
import type { Scenario } from '../scenario.ts'
import { connect, query } from '../query.ts'
import { CONNECTIONS_MAX } from '../servers.ts'
import type { Stage } from '../stage.ts'
import type { Place } from '../system.ts'
import { OURS } from '../systems/catalogue.ts'

const ON_POSTGRES = ['postgres', 'hybrid'] as const
const KILL_EVERY_MS = 500
const READERS = 4
const READ_EVERY_MS = 100
/** Connections that are left to the system. */
const LEFT_OVER = 5
const CONNECT_EVERY_MS = 20
const CONNECT_AT_ONCE = 10
const REACTION_S = 5

export const POSTGRES_SCENARIOS: readonly Scenario[] = [
  {
    name: 'postgres-restart',
    says: 'PostgreSQL is restarted (fast) under 1000 jobs/s; default settings',
    backends: ON_POSTGRES,
    peers: 'usual',
    ratePerS: 1000,
    // A restart under load may take longer than a ttl of 2 s leaves a worker in trust.
    ttl: 'long',
    async strike({ servers }, { phaseMs }) {
      const atMs = Date.now()
      await servers.postgres.restart('fast')
      const backMs = Date.now()
      await wait(Math.max(phaseMs, REACTION_S * 1000))
      return { atMs, backMs, robbed: [] }
    },
    // Connections are made again after a pause that grows; meanwhile every call fails at once, and its caller is told.
    promise: { recoveryMaxS: REACTION_S, steady: { share: 0.95, withinS: REACTION_S } },
  },
  {
    name: 'postgres-crash',
    says: 'PostgreSQL is stopped at once, as by a crash, and recovers from its log',
    backends: ON_POSTGRES,
    peers: 'asked',
    async strike({ servers }) {
      const atMs = Date.now()
      await servers.postgres.restart('immediate')
      return { atMs, backMs: Date.now(), robbed: [] }
    },
    promise: { recoveryMaxS: REACTION_S },
  },
  {
    name: 'pg-backend-kill',
    says: 'every active or idle-in-transaction backend is ended, twice a second',
    backends: ON_POSTGRES,
    peers: 'usual',
    async strike({ place }, { phaseMs }) {
      const atMs = Date.now()
      while (Date.now() < atMs + phaseMs) {
        // Between two statements nobody is active: a blow that hits nobody is none.
        await until(async () => (await endBackends(place)) > 0, 'an active backend')
        await wait(KILL_EVERY_MS)
      }
      return { atMs, backMs: Date.now(), robbed: [] }
    },
    promise: { recoveryMaxS: REACTION_S, ratioMin: 0.9 },
  },
  {
    name: 'idle-in-tx',
    says: 'somebody holds a transaction open, and with it every dead row',
    backends: ON_POSTGRES,
    peers: 'usual',
    goesOn: true,
    strike: (stage, { phaseMs }) =>
      held(stage, 1, async ([client]) => {
        await client!.query('begin')
        await client!.query('select txid_current()')
        await wait(2 * phaseMs)
      }),
    promise: { ratioMin: 0.9 },
  },
  {
    name: 'pool-exhaustion',
    says: 'others take every connection of PostgreSQL that is free or is let go, until they have all but five',
    backends: ON_POSTGRES,
    peers: 'asked',
    goesOn: true,
    async strike(stage, { phaseMs }) {
      const { place, system } = stage
      const alive = system.name === OURS ? await aliveWorkers(place) : []
      const atMs = Date.now()
      await crowdOut(place, CONNECTIONS_MAX - LEFT_OVER, 2 * phaseMs)
      const backMs = Date.now()
      const after = alive.length === 0 ? [] : await aliveWorkers(place)
      const dead = alive.filter((id) => !after.includes(id))
      const flaws = dead.length === 0 ? [] : [`${dead.length} workers were taken for dead`]
      return { atMs, backMs, robbed: [], flaws }
    },
    promise: { ratioMin: 0.9 },
  },
  {
    name: 'active-readers',
    says: 'four connections count the largest table again and again, each in one long snapshot',
    backends: ON_POSTGRES,
    peers: 'asked',
    goesOn: true,
    strike: (stage, { phaseMs }) =>
      held(stage, READERS, async (clients) => {
        const [table] = await query<{ name: string }>(stage.place, LARGEST_TABLE)
        const endMs = Date.now() + 2 * phaseMs
        const read = async (client: pg.Client): Promise<void> => {
          await client.query('begin isolation level repeatable read')
          while (Date.now() < endMs) {
            await client.query(`select count(*) from ${table!.name}`)
            await wait(READ_EVERY_MS)
          }
        }
        await Promise.all(clients.map(read))
      }),
    promise: { ratioMin: 0.9 },
  },
]

/** All that are free, then whatever anybody lets go of. */
async function crowdOut({ postgres }: Place, count: number, ms: number): Promise<void> {
  const clients: pg.Client[] = []
  const take = async (): Promise<boolean> => {
    const client = await connect(postgres!).catch(refusedOrThrow)
    if (client !== undefined) clients.push(client)
    return client !== undefined
  }
  try {
    const several = (): readonly unknown[] => Array.from({ length: Math.min(CONNECT_AT_ONCE, count - clients.length) })
    while (clients.length < count && (await Promise.all(several().map(take))).every(Boolean));
    const endMs = Date.now() + ms
    while (Date.now() < endMs) if (clients.length >= count || !(await take())) await wait(CONNECT_EVERY_MS)
    const { rows } = await clients[0]!.query<{ used: number }>(
      `select count(*)::int as used from pg_stat_activity where backend_type = 'client backend'`,
    )
    if (rows[0]!.used < count) throw new Error(`only ${rows[0]!.used} connections were taken`)
  } finally {
    await Promise.all(clients.map((client) => client.end()))
  }
}

function refusedOrThrow(error: unknown): undefined {
  if (!/too many clients|remaining connection slots/.test(String(error))) throw error
}

async function aliveWorkers(place: Place): Promise<readonly string[]> {
  return (await query<{ id: string }>(place, 'select id from millrace.workers where is_alive')).map(({ id }) => id)
}

/** Answers how many. */
async function endBackends(place: Place): Promise<number> {
  const [row] = await query<{ ended: number }>(
    place,
    `select count(*) filter (where pg_terminate_backend(pid))::int as ended from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid() and state in ('active', 'idle in transaction')`,
  )
  return row!.ended
}

const LARGEST_TABLE = `select format('%I.%I', n.nspname, c.relname) as name from pg_class c
  join pg_namespace n on n.oid = c.relnamespace
  where c.relkind in ('r', 'p') and n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast')
  order by pg_total_relation_size(c.oid) desc limit 1`

/** So many connections for as long as `use` takes. */
async function held({ place }: Stage, count: number, use: (clients: readonly pg.Client[]) => Promise<void>) {
  const atMs = Date.now()
  const clients: pg.Client[] = []
  try {
    for (let no = 0; no < count; no++) clients.push(await connect(place.postgres!))
    await use(clients)
  } finally {
    await Promise.all(clients.map((client) => client.end()))
  }
  return { atMs, backMs: Date.now(), robbed: [] }
}
