// What `millrace doctor` asks a Redis: can it be reached, will it keep what it acknowledged, is there room, whose clock is
// it. Each check is a few reads; on a Cluster every master is asked and the worst answer counts.
import type { Clock } from '../../runtime/clock.ts'
import type { Check, Finding, FindingLevel } from '../../store/diagnosis.ts'
import type { RedisLink, RedisNode } from './link.ts'
import type { RedisStore } from './store.ts'

const ROUND_TRIP_WARN_MS = 20
const CLOCK_SKEW_WARN_MS = 1_000
const MEMORY_WARN_SHARE = 0.8
const FRAGMENTATION_WARN = 1.8
const MEGABYTE = 1024 * 1024
const VERSION_MIN = [6, 2] as const
const PINGS = 5

export function diagnoseRedis(store: Pick<RedisStore, 'link' | 'clock'>): () => Promise<readonly Check[]> {
  const { link, clock } = store
  const onEach = checkOnEach(link)
  const checks: readonly Check[] = [
    onEach('round trip', (node) => roundTrip(node, clock)),
    onEach('version', async (node) => version(await infoOf(node, 'server'))),
    onEach('memory', async (node) => memory(await infoOf(node, 'memory'), STORE_FULL)),
    onEach('eviction', async (node) => eviction(await infoOf(node, 'memory'), await infoOf(node, 'stats'))),
    onEach('durability', durability),
    onEach('replication', async (node) => replication(await infoOf(node, 'replication'))),
    ...(link.isCluster ? [onEach('cluster', cluster)] : []),
    onEach('clock', (node) => clockSkew(node, clock)),
  ]
  return () => Promise.resolve(checks)
}

type Masters = Pick<RedisLink, 'onMasters'>

/** Of a Redis that only carries tokens: it may lose everything, so what it writes to its disk is no matter. */
export function dispatchChecks(masters: Masters, clock: Clock): readonly Check[] {
  const onEach = checkOnEach(masters)
  return [
    onEach('redis round trip', (node) => roundTrip(node, clock)),
    onEach('redis version', async (node) => version(await infoOf(node, 'server'))),
    onEach('redis memory', async (node) => memory(await infoOf(node, 'memory'), DISPATCH_FULL)),
    onEach('redis eviction', async (node) => tokenEviction(await infoOf(node, 'memory'), await infoOf(node, 'stats'))),
    onEach('redis replication', async (node) => replication(await infoOf(node, 'replication'))),
  ]
}

function checkOnEach(masters: Masters): (name: string, ask: (node: RedisNode) => Promise<Finding>) => Check {
  return (name, ask) => ({
    name,
    run: async () => worst(await masters.onMasters(async (node) => ({ node: node.name, ...(await ask(node)) }))),
  })
}

/** How far the clock of this process is ahead of the node's. */
export async function skewOf(node: RedisNode, clock: Clock): Promise<number> {
  const startMs = clock.monoMs()
  const [seconds, micros] = (await node.command('TIME')) as readonly string[] // two numbers as texts
  const halfMs = (clock.monoMs() - startMs) / 2
  return Math.round(clock.nowMs() - halfMs - (Number(seconds) * 1000 + Number(micros) / 1000))
}

type Info = ReadonlyMap<string, string>

async function infoOf(node: RedisNode, section: string): Promise<Info> {
  return linesOf(await node.command('INFO', section))
}

function linesOf(text: unknown): Info {
  const lines = String(text).split(/\r?\n/)
  return new Map(lines.filter((line) => line.includes(':')).map((line) => [before(line), after(line)]))
}

const before = (line: string): string => line.slice(0, line.indexOf(':'))
const after = (line: string): string => line.slice(line.indexOf(':') + 1)

/** Null where CONFIG is not allowed, as with most hosted servers. */
async function settingOf(node: RedisNode, name: string): Promise<string | null> {
  try {
    const [, value] = (await node.command('CONFIG', 'GET', name)) as readonly string[] // name and value
    return value ?? null
  } catch {
    return null
  }
}

const LEVELS: readonly FindingLevel[] = ['ok', 'warn', 'fail']

/** Of several masters: the worst answer, and whose it is. */
function worst(found: readonly (Finding & { readonly node: string })[]): Finding {
  const [first] = found
  if (first === undefined) return fail('no master could be asked', 'look at CLUSTER NODES')
  const bad = found.reduce((most, one) => (LEVELS.indexOf(one.level) > LEVELS.indexOf(most.level) ? one : most), first)
  const { node, ...finding } = bad
  return found.length === 1 ? finding : { ...finding, message: `${node}: ${finding.message}` }
}

async function roundTrip(node: RedisNode, clock: Clock): Promise<Finding> {
  const times: number[] = []
  for (let ping = 0; ping < PINGS; ping++) {
    const startMs = clock.monoMs()
    await node.command('PING')
    times.push(clock.monoMs() - startMs)
  }
  const ms = times.sort((a, b) => a - b)[Math.floor(PINGS / 2)] ?? 0
  const message = `${node.name} answers in ${ms.toFixed(1)} ms`
  if (ms < ROUND_TRIP_WARN_MS) return ok(message)
  return warn(message, 'run workers near their Redis: every claim and every end of a job waits for it')
}

function version(info: Info): Finding {
  const text = info.get('redis_version') ?? ''
  const [major = 0, minor = 0] = text.split('.').map(Number)
  const name = info.has('valkey_version') ? `Valkey ${info.get('valkey_version')}` : `Redis ${text}`
  const isOld = major < VERSION_MIN[0] || (major === VERSION_MIN[0] && minor < VERSION_MIN[1])
  return isOld ? fail(`${name} is too old`, 'Redis 6.2 or newer, or Valkey') : ok(name)
}

/** What it means that no memory is left, and what to do about it. */
type FullTerms = readonly [means: string, fix: string]

const STORE_FULL: FullTerms = [
  'at the limit every write is refused',
  'shorten the retention, work off the queues, or raise maxmemory',
]
const DISPATCH_FULL: FullTerms = [
  'from here on more and more jobs wait in PostgreSQL instead',
  'raise maxmemory, or lower `window` and `windowTotal`',
]

function memory(info: Info, [means, fullFix]: FullTerms): Finding {
  const used = Number(info.get('used_memory') ?? 0)
  const max = Number(info.get('maxmemory') ?? 0)
  const fragmentation = Number(info.get('mem_fragmentation_ratio') ?? 1)
  const shown = `${megabytes(used)} of ${max === 0 ? 'no limit' : megabytes(max)} in use`
  if (max > 0 && used > max * MEMORY_WARN_SHARE) {
    return warn(`${shown}: ${means}`, fullFix)
  }
  if (max === 0) {
    const fix = 'set maxmemory to about 60 % of the machine: without it the kernel ends Redis when memory runs out'
    return warn(`${megabytes(used)} in use and no maxmemory`, fix)
  }
  if (used > 100 * MEGABYTE && fragmentation > FRAGMENTATION_WARN) {
    return warn(`${shown}, fragmentation ${fragmentation}`, 'config set activedefrag yes')
  }
  return ok(shown)
}

function eviction(info: Info, stats: Info): Finding {
  const policy = info.get('maxmemory_policy') ?? 'noeviction'
  const evicted = Number(stats.get('evicted_keys') ?? 0)
  if (policy !== 'noeviction') {
    const message = `maxmemory-policy is ${policy}: Redis may delete jobs to make room`
    return fail(message, 'config set maxmemory-policy noeviction, and the same in redis.conf')
  }
  if (evicted === 0) return ok('maxmemory-policy noeviction, nothing was evicted')
  const message = `${evicted} keys were evicted since the start of this server: jobs may be gone`
  return warn(message, 'compare with what should be there; the count begins anew with config resetstat')
}

/** A token that is evicted is a job that waits until somebody misses it; whatever belongs to a queue is torn with it. */
function tokenEviction(info: Info, stats: Info): Finding {
  const policy = info.get('maxmemory_policy') ?? 'noeviction'
  const evicted = Number(stats.get('evicted_keys') ?? 0)
  if (policy === 'noeviction') return ok(`maxmemory-policy noeviction, ${evicted} keys were evicted`)
  // All keys but those for people live until they are deleted.
  if (policy.startsWith('volatile-')) return ok(`maxmemory-policy ${policy}: tokens have no ttl and stay`)
  const message = `maxmemory-policy is ${policy}: Redis may delete tokens, whose jobs then wait for seconds; ${evicted} keys were evicted`
  return warn(message, 'config set maxmemory-policy noeviction, and the same in redis.conf')
}

async function durability(node: RedisNode): Promise<Finding> {
  const info = await infoOf(node, 'persistence')
  const isAof = info.get('aof_enabled') === '1'
  const failed = ['rdb_last_bgsave_status', 'aof_last_write_status', 'aof_last_bgrewrite_status'].filter(
    (name) => (info.get(name) ?? 'ok') !== 'ok',
  )
  if (failed.length > 0) {
    return fail(`Redis could not write to its disk (${failed.join(', ')})`, 'look at its log and at the free space')
  }
  const fsync = await settingOf(node, 'appendfsync')
  if (!isAof) {
    const message = 'AOF is off: a restart loses everything since the last snapshot'
    return warn(message, 'config set appendonly yes, and the same in redis.conf')
  }
  if (fsync === 'no') {
    const message = 'appendfsync no: a power cut may lose half a minute of acknowledged jobs'
    return warn(message, 'config set appendfsync everysec, or always')
  }
  const loss = fsync === 'always' ? 'nothing acknowledged' : 'up to a second of acknowledged jobs'
  return ok(`AOF on, appendfsync ${fsync ?? '(not told)'}: a power cut may lose ${fsync === null ? 'jobs' : loss}`)
}

function replication(info: Info): Finding {
  if (info.get('role') === 'slave') {
    return fail('this server is a replica and takes no writes', 'connect to the primary, or through Sentinel')
  }
  const replicas = Number(info.get('connected_slaves') ?? 0)
  const behind = [...info]
    .filter(([name]) => /^slave\d+$/.test(name))
    .filter(([, text]) => !text.includes('state=online'))
    .map(([name]) => name)
  if (behind.length > 0)
    return warn(`${behind.length} of ${replicas} replicas are not in step`, 'look at INFO replication')
  if (replicas === 0) return ok('a primary without replicas')
  return ok(`a primary with ${replicas} replica(s); a failover may lose what they have not received yet`)
}

async function cluster(node: RedisNode): Promise<Finding> {
  const info = linesOf(await node.command('CLUSTER', 'INFO'))
  const state = info.get('cluster_state') ?? 'unknown'
  const assigned = Number(info.get('cluster_slots_ok') ?? 0)
  if (state === 'ok') return ok(`${info.get('cluster_size') ?? '?'} masters, ${assigned} slots served`)
  return fail(
    `cluster_state ${state}, ${assigned} of 16384 slots served`,
    'look at CLUSTER NODES and bring the missing ones back',
  )
}

async function clockSkew(node: RedisNode, clock: Clock): Promise<Finding> {
  const skewMs = await skewOf(node, clock)
  const message = `this machine is ${Math.abs(skewMs)} ms ${skewMs < 0 ? 'behind' : 'ahead of'} the server`
  if (Math.abs(skewMs) < CLOCK_SKEW_WARN_MS) return ok(message)
  return warn(`${message}; a runAt of this machine means another moment there`, 'run NTP on both')
}

function megabytes(bytes: number): string {
  return `${Math.round(bytes / MEGABYTE)} MB`
}

const ok = (message: string): Finding => ({ level: 'ok', message })
const warn = (message: string, fix: string): Finding => ({ level: 'warn', message, fix })
const fail = (message: string, fix: string): Finding => ({ level: 'fail', message, fix })
