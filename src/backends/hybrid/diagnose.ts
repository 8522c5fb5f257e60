// What `millrace doctor` asks the hybrid beyond its two servers: do both halves agree on the epochs, does the relay keep up, is
// there a token for every job that is dispatched, who holds up a barrier. What comes and goes in a second is how it works:
// only what is found again and again counts.
import { formatDuration } from '../../core/duration.ts'
import { bounded } from '../../runtime/bounded.ts'
import { sleep } from '../../runtime/clock.ts'
import type { Check, Finding } from '../../store/diagnosis.ts'
import { dispatchChecks, skewOf } from '../redis/diagnose.ts'
import type { SessionSeen } from '../postgres/ledger-eye.ts'
import { TOKEN_COUNTS } from './eye.ts'
import { survey } from './survey.ts'
import type { QueueSurvey, Surveyor } from './survey.ts'
import { fieldOf } from './token-text.ts'
import { guaranteeOf } from './window.ts'

const CLOCK_SKEW_WARN_MS = 1_000
const RELAY_LAG_WARN_MS = 5_000
const LOOK_AGAIN_MS = 1_000
/** Longer than a beat, an adoption and the way of a push. */
const LOOKS = 3
/** Reconcile brings back what is lost within three seconds. */
const LOOKS_FOR_LOST = 6
const ROWS_LOOKED_AT = 1_000
const NAMES_SHOWN = 5
/** So many jobs brought back, and this share of all, is more than a Redis that was restarted now and then. */
const REQUEUED_WARN = 100
const REQUEUED_WARN_SHARE = 0.01

export async function diagnoseHybrid(surveyor: Surveyor): Promise<readonly Check[]> {
  const { hybrid, raceEye } = surveyor
  const { clock } = hybrid.runtime
  const reach = await reachRedis(surveyor)
  // Whoever cannot be reached need not be asked more.
  const ofRedis: readonly Check[] =
    reach.level === 'ok'
      ? [...dispatchChecks(raceEye, clock), { name: 'redis clock', run: () => clocks(surveyor) }]
      : []
  return [
    { name: 'redis', run: () => Promise.resolve(reach) },
    ...ofRedis,
    { name: 'dispatch', run: () => dispatch(surveyor) },
    { name: 'relay', run: () => relay(surveyor) },
    { name: 'window', run: () => windowFill(surveyor) },
    { name: 'tokens', run: () => tokens(surveyor) },
    { name: 'barrier', run: () => barrier(surveyor) },
    { name: 'failing workers', run: () => failing(surveyor) },
    { name: 'token counts', run: () => counts(surveyor) },
  ]
}

async function reachRedis({ hybrid, raceEye }: Surveyor): Promise<Finding> {
  const { runtime, times } = hybrid
  try {
    await bounded(runtime.clock, times.raceMs, 'Redis', hybrid.connect())
    const ask = raceEye.onMasters(async (node) => {
      await node.command('PING')
      return node.name
    })
    const names = await bounded(runtime.clock, times.raceMs, 'Redis', ask)
    return ok(`${names.join(', ')} can be reached`)
  } catch (error) {
    const message = `Redis cannot be reached: ${error instanceof Error ? error.message : String(error)}`
    return fail(
      `${message}; jobs are claimed from PostgreSQL meanwhile`,
      'check that it runs, its address and password',
    )
  }
}

/** Of three clocks; no rule compares them, but people compare the times they are shown. */
async function clocks({ hybrid, raceEye }: Surveyor): Promise<Finding> {
  const { clock } = hybrid.runtime
  const startMs = clock.monoMs()
  const { nowMs } = await hybrid.store.schedules.due(0)
  const ledgerMs = Math.round(clock.nowMs() - (clock.monoMs() - startMs) / 2 - nowMs)
  const skews = await raceEye.onMasters((node) => skewOf(node, clock))
  const redisMs = skews.reduce((most, one) => (Math.abs(one) > Math.abs(most) ? one : most), 0)
  const apartMs = Math.max(ledgerMs, redisMs, 0) - Math.min(ledgerMs, redisMs, 0)
  const message = `this machine, PostgreSQL and Redis are at most ${apartMs} ms apart`
  if (apartMs < CLOCK_SKEW_WARN_MS) return ok(message)
  return warn(`${message}; nothing is decided by that, but shown times differ`, 'run NTP on all three')
}

/** Both halves on the same epoch, with tokens where somebody works. */
async function dispatch(surveyor: Surveyor): Promise<Finding> {
  const { hybrid, ledgerEye } = surveyor
  let queues: readonly QueueSurvey[] = []
  const problems = await lasting(surveyor, LOOKS, async () => {
    const sessions = await ledgerEye.sessions()
    queues = await survey(surveyor)
    return queues.flatMap((one) => epochProblem(one, sessions))
  })
  if (hybrid.view.serverChanged) {
    const message = 'PostgreSQL is another server than before (failover or restore), and nobody has said so yet'
    return fail(message, 'start a worker: it renews the epochs')
  }
  if (problems.length > 0) return warn(named(problems), 'start a worker of these queues, and look at its log')
  const withTokens = queues.filter(({ mode }) => mode === 'token')
  const modes = queues.map(({ queue, mode, epoch }) => `${queue} ${mode} ${epoch}`)
  return ok(`${withTokens.length} of ${queues.length} queues with tokens${modes.length > 0 ? `: ${named(modes)}` : ''}`)
}

function epochProblem({ queue, row, tag, look }: QueueSurvey, sessions: readonly SessionSeen[]): readonly string[] {
  const isServed = sessions.some(({ queues }) => queues.includes(queue))
  if (row.mode === 'ledger') {
    return isServed ? [`${queue} is claimed from PostgreSQL (mode ledger, epoch ${row.epoch})`] : []
  }
  if (row.birth === null) return [`epoch ${row.epoch} of ${queue} was never opened in Redis`]
  if (look === null || look.epoch === tag) return []
  return [`${queue} is at epoch ${tag}, and Redis has ${look.epoch === '' ? 'none' : look.epoch}`]
}

async function relay(surveyor: Surveyor): Promise<Finding> {
  let worst = { queue: '', lagMs: 0 }
  const late = await lasting(surveyor, LOOKS, async () => {
    const lags = (await survey(surveyor)).map(({ queue, relayLagMs }) => ({ queue, lagMs: relayLagMs ?? 0 }))
    worst = lags.reduce((most, one) => (one.lagMs > most.lagMs ? one : most), { queue: '', lagMs: 0 })
    return lags.filter(({ lagMs }) => lagMs > RELAY_LAG_WARN_MS).map(({ queue }) => queue)
  })
  if (worst.lagMs === 0) return ok('no ready job waits for its token')
  const message = `a ready job of ${worst.queue} has waited ${formatDuration(Math.round(worst.lagMs))} for its token, with room in Redis`
  if (late.length === 0) return ok(message)
  return warn(message, 'the relay runs in processes that work, with maintenance on: start one, or look at its log')
}

async function windowFill(surveyor: Surveyor): Promise<Finding> {
  const { hybrid } = surveyor
  const queues = await survey(surveyor)
  const { window, windowTotal } = hybrid.times
  const lanes = queues.flatMap(({ queue, look }) =>
    (look?.depths ?? []).map((depth, lane) => ({ name: `${queue}/${LANE_NAMES[lane]}`, depth })),
  )
  const full = lanes.filter(({ depth }) => depth > 0).sort((a, b) => b.depth - a.depth)
  const sum = lanes.reduce((all, { depth }) => all + depth, 0)
  const fill = full.map(({ name, depth }) => `${name} ${depth}`)
  const guarantee = guaranteeOf(hybrid.windowTerms())
  const bounds = `${sum} of ${windowTotal} tokens in all; a lane may have ${window}, and ${guarantee} in any case`
  return ok(fill.length === 0 ? bounds : `${bounds}: ${named(fill)}`)
}

const LANE_NAMES = ['high', 'normal', 'low'] as const

/** For every job that PostgreSQL calls dispatched there is a token, or soon will be. */
async function tokens(surveyor: Surveyor): Promise<Finding> {
  const { ledgerEye, raceEye } = surveyor
  const queues = await survey(surveyor)
  const sum = (of: (one: QueueSurvey) => number | null): number => queues.reduce((all, one) => all + (of(one) ?? 0), 0)
  const numbers = `${sum(({ waiting }) => waiting)} wait, ${sum(({ inFlight }) => inFlight)} in flight, ${sum(({ unmarked }) => unmarked)} dispatched in PostgreSQL`
  if (queues.some(({ look, mode }) => look === null && mode === 'token')) {
    return warn(`${numbers}; Redis cannot be asked`, 'see "redis"')
  }
  const lost = await lasting(surveyor, LOOKS_FOR_LOST, async () => {
    const found: string[] = []
    for (const { queue, mode, unmarked } of queues) {
      if (unmarked === 0) continue
      const fields = (await ledgerEye.unmarked(queue, ROWS_LOOKED_AT)).map(fieldOf)
      const isThere = mode === 'token' ? await raceEye.has(queue, fields) : []
      found.push(...fields.filter((_, index) => !isThere[index]).map((field) => `${queue} ${field}`))
    }
    return found
  })
  if (lost.length === 0) return ok(numbers)
  const message = `${numbers}; ${lost.length} of the oldest have no token and do not come back, such as ${lost[0]}`
  return warn(message, 'reconcile runs in processes that work, with maintenance on: start one; see "barrier"')
}

/** Jobs of an older epoch move back when everybody has seen the new one. */
async function barrier(surveyor: Surveyor): Promise<Finding> {
  const { hybrid, ledgerEye } = surveyor
  let epoch = 0
  const behind = await lasting(surveyor, LOOKS, async () => {
    await hybrid.epochs.refresh()
    epoch = [...hybrid.view.rows()].reduce((most, row) => Math.max(most, row.epoch), 0)
    const late = (await ledgerEye.sessions()).filter(({ epochSeen }) => epochSeen < epoch)
    return late.map(({ id, host, pid, epochSeen }) => `${id} (process ${pid} on ${host}) at epoch ${epochSeen}`)
  })
  if (behind.length === 0) return ok(`every live worker has seen epoch ${epoch}`)
  const message = `jobs of older epochs than ${epoch} wait for ${named(behind)}`
  return warn(message, 'a worker that hangs is declared dead after its ttl; end the process if it stays')
}

async function failing({ ledgerEye }: Surveyor): Promise<Finding> {
  const sessions = await ledgerEye.sessions()
  const bad = sessions.filter((one) => one.failing.length > 0)
  if (bad.length === 0) return ok(`${sessions.length} workers use Redis without trouble`)
  const who = bad.map((one) => `${one.id} (process ${one.pid} on ${one.host}): ${one.failing.join(', ')}`)
  const message = `${bad.length} of ${sessions.length} workers cannot use Redis and claim from PostgreSQL: ${named(who)}`
  return warn(message, 'look at the network between these hosts and Redis')
}

async function counts(surveyor: Surveyor): Promise<Finding> {
  const queues = await survey(surveyor)
  const sum = (name: (typeof TOKEN_COUNTS)[number]): number =>
    queues.reduce((all, { look }) => all + (look?.counts[name] ?? 0), 0)
  const message = TOKEN_COUNTS.map((name) => `${name} ${sum(name)}`).join(', ')
  const isMuch = sum('requeued') >= REQUEUED_WARN && sum('requeued') > sum('taken') * REQUEUED_WARN_SHARE
  if (!isMuch) return ok(message)
  return warn(
    message,
    'tokens get lost often: see "redis eviction" and "redis replication", and how often Redis restarts',
  )
}

/** What is found every time, a while apart. */
async function lasting(
  { hybrid }: Surveyor,
  looks: number,
  find: () => Promise<readonly string[]>,
): Promise<readonly string[]> {
  let found = await find()
  for (let look = 1; look < looks && found.length > 0; look++) {
    await sleep(hybrid.runtime.clock, LOOK_AGAIN_MS)
    const again = new Set(await find())
    found = found.filter((one) => again.has(one))
  }
  return found
}

function named(all: readonly string[]): string {
  const more = all.length > NAMES_SHOWN ? `, and ${all.length - NAMES_SHOWN} more` : ''
  return `${all.slice(0, NAMES_SHOWN).join(', ')}${more}`
}

const ok = (message: string): Finding => ({ level: 'ok', message })
const warn = (message: string, fix: string): Finding => ({ level: 'warn', message, fix })
const fail = (message: string, fix: string): Finding => ({ level: 'fail', message, fix })
