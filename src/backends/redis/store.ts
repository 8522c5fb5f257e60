// What the ports of this backend share: the link, the names of keys, and scripts made ready for this store.
import { LIMITS } from '../../core/limits.ts'
import { defaultQueue } from '../../store/queue-defaults.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { Clock } from '../../runtime/clock.ts'
import { redisKeys } from './keys.ts'
import type { RedisKeys } from './keys.ts'
import type { RedisLink, RedisValue } from './link.ts'
import { LUA } from './lua.generated.ts'
import { configFields } from './queue-fields.ts'
import { script } from './script.ts'
import type { Script } from './script.ts'
import { PARKED_MS } from './wakeups.ts'
import { Whereabouts } from './whereabouts.ts'

export interface RedisStore {
  readonly link: RedisLink
  readonly keys: RedisKeys
  readonly clock: Clock
  readonly logger: Logger
  /** In which queue a job is, as far as this process has seen. */
  readonly where: Whereabouts
  /** Tests set time by a key; production scripts never read one. */
  readonly clockKey?: string
}

export type ScriptName = keyof typeof LUA

/** Calls one script. The queue decides, on a Cluster, which node runs it; every script gets the prefix first. */
export type ScriptCall = (queue: string, args: readonly RedisValue[]) => Promise<unknown>

export interface StoreParts extends Pick<RedisStore, 'link' | 'clock' | 'logger' | 'clockKey'> {
  readonly prefix: string
}

export function createStore({ prefix, ...parts }: StoreParts): RedisStore {
  return { ...parts, keys: redisKeys(prefix), where: new Whereabouts() }
}

/** Ids come back as bytes, so nothing of it is read as text. */
const ANSWERS_BYTES: ReadonlySet<ScriptName> = new Set<ScriptName>(['cycle'])

/** A script of this store, ready to be called. */
export function prepared(store: RedisStore, what: string, name: ScriptName): ScriptCall {
  const one = scriptOf(store, what, name)
  const { link, keys } = store
  const method = ANSWERS_BYTES.has(name) ? 'runBinary' : 'run'
  return (queue, args) => link[method](one, [keys.queue(queue, 'config')], [keys.prefix, ...args])
}

const CLOCK = "redis.call('TIME')"
const ON_ONE_SERVER = 'local is_cluster = false'
const ON_CLUSTER = 'local is_cluster = true'
/** What scripts must not say a second time, by the name they know it by. */
const WRITTEN: Readonly<Record<string, () => string>> = {
  defaults: defaultFields,
  auditRowsMax: () => String(LIMITS.auditRowsMax),
  logLinesMax: () => String(LIMITS.logLinesMax),
  jobLogLinesMax: () => String(LIMITS.jobLogLinesMax),
  maintenanceBatchMax: () => String(LIMITS.maintenanceBatchMax),
  parkedMs: () => String(PARKED_MS),
  handOverMax: () => String(LIMITS.handOverMax),
}

type ScriptStore = Pick<RedisStore, 'clockKey'> & { readonly link: Pick<RedisLink, 'isCluster'> }

/** What scripts cannot know by themselves is written into their text: settings and bounds (`'@name'`), the clock of tests, where they run. */
export function scriptOf(store: ScriptStore, what: string, name: ScriptName): Script {
  const written: string = store.link.isCluster ? LUA[name].replace(ON_ONE_SERVER, ON_CLUSTER) : LUA[name]
  const text = written.replace(/'@(\w+)'/g, (_, known: string) => WRITTEN[known]!())
  const { clockKey } = store
  return script(what, clockKey === undefined ? text : text.replaceAll(CLOCK, () => testClock(clockKey)))
}

function defaultFields(): string {
  const fields = configFields({ ...defaultQueue(''), paused: false })
  return Object.entries(fields)
    .map(([name, value]) => `${luaText(name)}, ${luaText(value)},`)
    .join(' ')
    .slice(0, -1)
}

/** In the form of TIME: seconds and microseconds. */
function testClock(key: string): string {
  const get = `tonumber(redis.call('GET', ${luaText(key)}))`
  return `(function() local ms = ${get} return { math.floor(ms / 1000), (ms % 1000) * 1000 } end)()`
}

function luaText(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", String.raw`\'`)}'`
}
