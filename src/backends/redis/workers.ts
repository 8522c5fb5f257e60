// Worker lives, leader leases, commands. Everything about workers is one slot of a Cluster, so each call is one script.
import type { WorkerId } from '../../core/job.ts'
import { DEFAULTS, LIMITS } from '../../core/limits.ts'
import type { WorkerRecord, WorkerStore } from '../../store/worker-store.ts'
import { prepareBeat } from './beat.ts'
import type { RedisValue } from './link.ts'
import { scriptOf } from './store.ts'
import type { RedisStore, ScriptName } from './store.ts'

/** The dead are told of for a while; each new life forgets some of the older ones. */
const FORGOTTEN_MAX = 100
const COMMANDS_MAX = 100
const PAGE = 500
const PAGES_MAX = 100

const FIELDS = [
  'host',
  'pid',
  'queues',
  'concurrency',
  'state',
  'beat',
  'running',
  'blocked',
  'started',
  'lastBeat',
] as const

export function redisWorkers(store: RedisStore): WorkerStore {
  const { link, keys } = store
  const prepare = (what: string, name: ScriptName) => {
    const one = scriptOf(store, what, name)
    return (...args: readonly RedisValue[]) => link.run(one, [keys.workers], [keys.prefix, ...args])
  }
  const register = prepare('workers.register', 'workerRegister')
  const bury = prepare('workers.declareDead', 'workerBury')
  const list = prepare('workers.list', 'workerList')
  const lead = prepare('workers.lead', 'workerLead')
  const resign = prepare('workers.resign', 'workerResign')
  const leader = prepare('workers.leader', 'workerLeader')
  const send = prepare('workers.send', 'workerSend')
  const forget = prepare('workers.forget', 'workerForget')

  return {
    async register({ id, host, pid, queues, concurrency }) {
      await register(id, host, pid, JSON.stringify(queues), concurrency, DEFAULTS.deadWorkerKeptMs, FORGOTTEN_MAX)
    },
    beat: prepareBeat(store),
    async retire(id) {
      await bury(id, '')
    },
    async list() {
      const found = new Map<string, WorkerRecord>()
      for (let page = 0; page < PAGES_MAX; page++) {
        const rows = (await list(page * PAGE, PAGE, ...FIELDS)) as readonly Row[] // as worker-list.lua answers
        // One that is forgotten between two pages moves the others by one: none of the living is lost by that.
        for (const worker of rows.map(parseWorker)) if (worker !== null) found.set(worker.id, worker)
        if (rows.length < PAGE) break
      }
      return [...found.values()]
    },
    async declareDead(seen) {
      if (seen.length === 0) return []
      return (await bury(...seen.flatMap(({ id, beat }) => [id, beat]))) as readonly WorkerId[] // of those that were named
    },
    async lead({ role, holder, ttlMs }) {
      const [leader, term] = (await lead(role, holder, Math.ceil(ttlMs))) as readonly [string, string] // as worker-lead.lua answers
      return { held: leader === holder, holder: leader, term: Number(term) }
    },
    async resign(role, holder) {
      await resign(role, holder)
    },
    async leader(role) {
      const found = (await leader(role)) as readonly [string, string] | null // as worker-leader.lua answers
      return found === null ? null : { holder: found[0], term: Number(found[1]) }
    },
    async send(target, command) {
      return (await send(target, JSON.stringify(command), COMMANDS_MAX)) === 1
    },
    async forget(endedForMs, limit) {
      return Number(await forget(Math.ceil(endedForMs), Math.min(limit, LIMITS.maintenanceBatchMax)))
    },
  }
}

type Row = readonly (string | null)[]

function parseWorker(row: Row): WorkerRecord | null {
  const id = row[FIELDS.length]
  const text = (name: (typeof FIELDS)[number]): string => row[FIELDS.indexOf(name)] ?? ''
  if (typeof id !== 'string' || text('state') === '') return null
  return {
    id: id as WorkerId, // registered as one
    host: text('host'),
    pid: Number(text('pid')),
    queues: JSON.parse(text('queues')) as readonly string[], // written by `register`
    concurrency: Number(text('concurrency')),
    state: text('state') === 'alive' ? 'alive' : 'dead',
    beat: Number(text('beat')),
    running: Number(text('running')),
    blockedMs: Number(text('blocked')),
    startedAtMs: Number(text('started')),
    lastBeatAtMs: Number(text('lastBeat')),
  }
}
