// Recurring jobs. A tick is fired by a compare-and-set on the next run, with its jobs in the same script. On a Cluster
// the jobs are on other nodes: they wait in an outbox that the same script wrote, until they are inserted.
import { isFinal } from '../../core/job.ts'
import type { JobId, NewJob } from '../../core/job.ts'
import { LIMITS } from '../../core/limits.ts'
import type { JobStore } from '../../store/ports.ts'
import type {
  FireReply,
  FireRequest,
  ScheduleRecord,
  ScheduleSettings,
  ScheduleStore,
} from '../../store/schedule-store.ts'
import { insertArgs } from './insert-args.ts'
import type { RedisValue } from './link.ts'
import { fieldsOf } from './record.ts'
import type { Fields } from './record.ts'
import { scriptOf } from './store.ts'
import type { RedisStore, ScriptName } from './store.ts'

const PAGE = 200
const PAGES_MAX = 500
/** Entries of the outbox that one look takes along. */
const OUTBOX_MAX = 100

export interface ScheduleParts {
  readonly insert: JobStore['insert']
  /** Is this job there and not ended? */
  readonly read: (id: JobId) => Promise<{ readonly status: Parameters<typeof isFinal>[0] } | null>
}

export function redisSchedules(store: RedisStore, parts: ScheduleParts): ScheduleStore {
  const { link, keys } = store
  const prepare = (what: string, name: ScriptName) => {
    const one = scriptOf(store, what, name)
    return (...args: readonly RedisValue[]) => link.run(one, [keys.schedules('due')], [keys.prefix, ...args])
  }
  const upsert = prepare('schedules.upsert', 'scheduleUpsert')
  const enable = prepare('schedules.setEnabled', 'scheduleEnable')
  const remove = prepare('schedules.remove', 'scheduleRemove')
  const list = prepare('schedules.list', 'scheduleList')
  const fire = link.isCluster ? createFireApart(store, parts, prepare) : createFire(prepare)

  async function ask(...args: readonly RedisValue[]) {
    const [now, next, ...rows] = (await list(...args)) as readonly [string, string, ...unknown[]] // as schedule-list.lua answers
    const schedules: ScheduleRecord[] = []
    for (let at = 0; at < rows.length; at += 2) {
      schedules.push(parseSchedule(String(rows[at]), fieldsOf(rows[at + 1] as readonly string[]))) // by turns
    }
    const nowMs = Number(now)
    return { nowMs, schedules, nextDueInMs: next === '' ? null : Number(next) - nowMs }
  }

  return {
    async upsert(schedules) {
      if (schedules.length > 0) await upsert(...schedules.flatMap(upsertArgs))
    },
    async get(name) {
      return (await ask('one', name)).schedules[0] ?? null
    },
    async list() {
      const found: ScheduleRecord[] = []
      for (let page = 0; page < PAGES_MAX; page++) {
        const { schedules } = await ask('all', page * PAGE, PAGE)
        found.push(...schedules)
        if (schedules.length < PAGE) break
      }
      return found
    },
    async remove(name) {
      return (await remove(name)) === 1
    },
    async setEnabled(name, enabled, nextRunMs) {
      return (await enable(name, enabled ? 1 : 0, nextRunMs ?? '')) === 1
    },
    async due(limit) {
      if (link.isCluster && limit > 0) await deliverOutbox(store, parts)
      return ask('due', Math.min(limit, LIMITS.maintenanceBatchMax))
    },
    fire,
  }
}

type Prepare = (what: string, name: ScriptName) => (...args: readonly RedisValue[]) => Promise<unknown>

function createFire(prepare: Prepare): ScheduleStore['fire'] {
  const fire = prepare('schedules.fire', 'scheduleFire')
  return async (request) => {
    const { schedule, expectedRunMs, nextRunMs, unlessLive } = request
    const head = [schedule, expectedRunMs, nextRunMs ?? '', unlessLive ? 1 : 0, ...newestOf(request)]
    return (await fire(...head, ...insertArgs(request.jobs.map(plain)))) as FireReply // the words that the script gives
  }
}

function createFireApart(store: RedisStore, parts: ScheduleParts, prepare: Prepare): ScheduleStore['fire'] {
  const fire = prepare('schedules.fire', 'scheduleFireApart')
  const get = prepare('schedules.fire', 'scheduleList')
  return async (request) => {
    const { schedule, expectedRunMs, nextRunMs, unlessLive } = request
    let jobs = request.jobs.map(plain)
    if (unlessLive && jobs.length > 0) {
      const [, , , fields = []] = (await get('one', schedule)) as readonly [
        string,
        string,
        string?,
        (readonly string[])?,
      ] // as schedule-list.lua answers
      const lastJob = fieldsOf(fields).get('lastJob')
      const last = lastJob === undefined ? null : await parts.read(lastJob as JobId) // written by a tick
      if (last !== null && !isFinal(last.status)) jobs = []
    }
    const head = [schedule, expectedRunMs, nextRunMs ?? '', ...newestOf({ ...request, jobs })]
    const reply = (await fire(...head, JSON.stringify(jobs))) as FireReply // the words that the script gives
    if (reply === 'fired') await deliver(store, parts, `${schedule} ${expectedRunMs}`, jobs)
    return reply
  }
}

async function deliver(store: RedisStore, { insert }: ScheduleParts, entry: string, jobs: readonly NewJob[]) {
  await insert(jobs)
  await store.link.command('HDEL', store.keys.schedules('outbox'), entry)
}

/** What a scheduler left behind that died between its two steps. */
async function deliverOutbox(store: RedisStore, parts: ScheduleParts): Promise<void> {
  const { link, keys } = store
  const [, found] = (await link.command('HSCAN', keys.schedules('outbox'), 0, 'COUNT', OUTBOX_MAX)) as [
    string,
    string[],
  ] // as the command answers
  for (const [entry, jobs] of fieldsOf(found)) await deliver(store, parts, entry, JSON.parse(jobs) as NewJob[]) // written by `fire`
}

/** Tick, id and queue of the newest job; no id without jobs. */
function newestOf({ jobs, expectedRunMs }: FireRequest): readonly RedisValue[] {
  const newest = jobs.at(-1)
  return [newest?.schedule?.tickMs ?? expectedRunMs, newest?.id ?? '', newest?.queue ?? '']
}

/** Unique keys, batch and parents of a tick are not looked at. */
function plain(job: NewJob): NewJob {
  const { unique: _, batch: __, insideBatch: ___, dependsOn: ____, ...rest } = job
  return rest
}

function upsertArgs({ name, recurrence, enabled, firstRunMs, ...settings }: ScheduleSettings): readonly RedisValue[] {
  return [name, JSON.stringify(recurrence), JSON.stringify(settings), enabled ? 1 : 0, firstRunMs ?? '']
}

function parseSchedule(name: string, fields: Fields): ScheduleRecord {
  // Both written by upsertArgs.
  const settings = JSON.parse(fields.get('settings') ?? '{}') as Omit<
    ScheduleSettings,
    'name' | 'recurrence' | 'enabled'
  >
  const recurrence = JSON.parse(fields.get('recurrence') ?? 'null') as ScheduleRecord['recurrence']
  return {
    ...settings,
    name,
    recurrence,
    enabled: fields.get('enabled') === '1',
    nextRunMs: timeOf(fields, 'nextRun'),
    lastRunMs: timeOf(fields, 'lastRun'),
    lastJob: (fields.get('lastJob') ?? null) as JobId | null, // written by a tick
    createdAtMs: Number(fields.get('created')),
    version: Number(fields.get('version')),
  }
}

function timeOf(fields: Fields, name: string): number | null {
  const text = fields.get(name) ?? ''
  return text === '' ? null : Number(text)
}
