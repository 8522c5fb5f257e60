// The race on a real Redis: one script call per method, its reply as a typed value. It decides nothing and repeats
// nothing: a call that fails throws, and whether it took effect is unknown.
import type { WorkerId } from '../../core/job.ts'
import type { RedisLink, RedisValue } from '../redis/link.ts'
import { script } from '../redis/script.ts'
import { PARKED_MS } from '../redis/wakeups.ts'
import { bellChannel, handsName, probeKey, queueKeys } from './keys.ts'
import type { QueueKeys } from './keys.ts'
import { LUA } from './lua.generated.ts'
import type { EpochTag, Gated, GateRefusal, Handed, PushReply, PushRequest, Race, Revoked, TakeReply } from './ports.ts'
import type { TakeRequest, Token } from './ports.ts'

export interface RedisRaceOptions {
  readonly link: RedisLink
  readonly prefix: string
  /** How long a claim stands in Redis; longer for tests. */
  readonly standMs?: number
}

type Bits = readonly [boolean, boolean, boolean]
/** What a script answers: a word, then what belongs to it. */
type Answer = readonly [word: string, ...rest: unknown[]]

const SCRIPTS = {
  identity: script('hybrid identity', LUA.identity),
  probe: script('hybrid probe', LUA.probe),
  open: script('hybrid open', LUA.open),
  push: script('hybrid push', LUA.push),
  take: script('hybrid take', LUA.take),
  holdings: script('hybrid holdings', LUA.holdings),
  drop: script('hybrid drop', LUA.drop),
  revoke: script('hybrid revoke', LUA.revoke),
  audit: script('hybrid audit', LUA.audit),
  config: script('hybrid config', LUA.config),
}
type ScriptName = keyof typeof SCRIPTS

/**
 * Between tokens and between fields, of which many travel as one text: an argument and a reply of their own for each cost this
 * process more than a microsecond per job. Neither contains it (token-text.ts).
 */
const BETWEEN = '\n'

export function redisRace({ link, prefix, standMs = PARKED_MS }: RedisRaceOptions): Race {
  const channel = bellChannel(prefix)
  const keys = new Map<string, QueueKeys>()
  const listeners = new Set<(queue: string) => void>()
  let unsubscribe: (() => void) | undefined

  function keysOf(queue: string): QueueKeys {
    let own = keys.get(queue)
    if (own === undefined) keys.set(queue, (own = queueKeys(prefix, queue)))
    return own
  }

  // The word and the rest come from our own scripts: their text is part of this module.
  async function answer(name: ScriptName, queue: string, args: readonly RedisValue[]): Promise<Answer> {
    return (await link.run(SCRIPTS[name], keysOf(queue), args)) as Answer
  }

  async function gated<Value>(
    name: ScriptName,
    queue: string,
    args: readonly RedisValue[],
    read: (answer: Answer) => Value,
  ): Promise<Gated<Value>> {
    const found = await answer(name, queue, args)
    const refused = refusalOf(found)
    return refused === null ? { refused, value: read(found) } : { refused, value: null }
  }

  return {
    async identity(queue) {
      return (await link.run(SCRIPTS.identity, keysOf(queue), [])) as string
    },
    async probe(queue, tag) {
      const found = (await link.run(SCRIPTS.probe, [...keysOf(queue), probeKey(prefix, queue)], [tag ?? ''])) as Answer
      const refused = refusalOf(found)
      return { redisId: refused?.redisId ?? String(found[1]), refused }
    },
    async open(queue, request) {
      const { epoch, redisId, firstLease, version, paused, lowerLaneShare } = request
      const args = [epoch, redisId, firstLease, version, bit(paused), lowerLaneShare]
      const [word, found] = await answer('open', queue, args)
      if (word === 'OK') return { kind: 'open', birth: String(found) }
      if (word === 'AHEAD') return { kind: 'ahead', epoch: Number(found) }
      return { kind: 'identity', redisId: String(found) }
    },
    push: (queue, tag, request) => gated('push', queue, pushArgs(queue, tag, request, channel), pushReply),
    take: (queue, tag, request) =>
      gated('take', queue, takeArgs(tag, request, handsName(prefix, request.session), standMs), takeReply),
    holdings: (queue, tag, { session, c, cursor }) =>
      gated('holdings', queue, [tag, session, c, cursor], ([, next, fields]) => ({
        fields: fields as readonly string[],
        cursor: String(next),
      })),
    drop: (queue, tag, session, fields, last) => gated('drop', queue, [tag, session, bit(last), ...fields], () => null),
    revoke: (queue, tag, fields) =>
      gated('revoke', queue, [tag, ...fields], ([, ...notes]) => notes.map((note) => revoked(String(note)))),
    audit: (queue, tag, below, fields) =>
      gated('audit', queue, [tag, below, ...fields], ([, absent, sessions]) => ({
        absent: absent as readonly string[],
        sessions: sessions as readonly WorkerId[],
      })),
    config: (queue, tag, { version, paused, lowerLaneShare }) =>
      gated('config', queue, [tag, version, bit(paused), lowerLaneShare, channel, queue], () => null),
    async memory() {
      const nodes = await link.onMasters(async (node) => memoryOf(String(await node.command('INFO', 'memory'))))
      return nodes.reduce((fullest, node) => (fullnessOf(node) > fullnessOf(fullest) ? node : fullest))
    },
    listen(onBell) {
      listeners.add(onBell)
      return () => listeners.delete(onBell)
    },
    ...(!link.isCluster && {
      hear: (session: WorkerId, onHanded: (handed: Handed) => void, onBack: () => void) =>
        link.subscribe(
          handsName(prefix, session),
          (message) => {
            const handed = handedOf(message)
            if (handed !== null) onHanded(handed)
          },
          onBack,
        ),
    }),
    async start() {
      await link.connect()
      unsubscribe ??= await link.subscribe(
        channel,
        (queue) => {
          for (const listener of listeners) listener(queue)
        },
        () => undefined,
      )
    },
    async stop() {
      unsubscribe?.()
      unsubscribe = undefined
      await link.close()
    },
  }
}

function refusalOf([word, redisId, epoch]: Answer): GateRefusal | null {
  if (word === 'EPOCH' || word === 'IDENTITY' || word === 'TORN') {
    return { why: word, redisId: String(redisId), epoch: String(epoch) }
  }
  return null
}

function pushArgs(queue: string, tag: EpochTag, request: PushRequest, channel: string): readonly RedisValue[] {
  const { pusher, tokens, backlog, window } = request
  const counts = [0, 0, 0]
  let lowest = tokens[0]?.lease ?? 0
  let highest = lowest
  for (const { lane, lease } of tokens) {
    counts[lane]! += 1
    if (lease < lowest) lowest = lease
    if (lease > highest) highest = lease
  }
  const bits = backlog === null ? '---' : backlog.map(bit).join('')
  return [tag, pusher, 2 * window, bits, channel, queue, lowest, highest, ...counts, textsOf(tokens, counts)]
}

/** One lane after the other. */
function textsOf(tokens: readonly Token[], counts: readonly number[]): string {
  const texts: string[] = []
  for (const lane of [0, 1, 2]) {
    if (counts[lane] === 0) continue
    const isOnly = counts[lane] === tokens.length
    for (const token of tokens) if (isOnly || token.lane === lane) texts.push(token.text)
  }
  return texts.join(BETWEEN)
}

function pushReply([word, high, normal, low, bits]: Answer): PushReply {
  const text = String(bits)
  return {
    isFull: word === 'FULL',
    depths: [Number(high), Number(normal), Number(low)],
    backlog: [text[0] === '1', text[1] === '1', text[2] === '1'] satisfies Bits,
  }
}

function takeArgs(tag: EpochTag, request: TakeRequest, hands: string, standMs: number): readonly RedisValue[] {
  const { session, c, most, done, stands } = request
  const args = [tag, session, c, most, done.join(BETWEEN)]
  if (stands === undefined) return args
  if (stands === 'no-longer') return [...args, hands, '', 0, 0]
  return [...args, hands, stands.claimNo, stands.most, stands.isLast ? standMs : 0]
}

function takeReply([word, answered, ...parts]: Answer): TakeReply {
  const told = answered === 1 ? { answered: true } : {}
  if (word === 'OK') return { kind: 'taken', texts: parts.flatMap((lines) => String(lines).split(BETWEEN)), ...told }
  if (word === 'PAUSED') return { kind: 'paused', ...told }
  return { kind: word === 'DUP' ? 'dup' : 'dead' }
}

/** As lua/_hand-over.lua tells it: a line that says what is answered, then a token a line. Null: somebody else has written it. */
function handedOf(message: string): Handed | null {
  const [head = '', ...texts] = message.split(BETWEEN)
  const [queue = '', tag = '', ...numbers] = head.split(' ')
  const [c, claimNo] = numbers.map(Number)
  if (!Number.isSafeInteger(c) || !Number.isSafeInteger(claimNo)) return null
  return { queue, tag, c: c!, claimNo: claimNo!, texts }
}

function revoked(note: string): Revoked {
  if (note === 'x') return 'revoked'
  if (note === '-') return 'absent'
  return { session: note.slice(0, note.lastIndexOf('/')) as WorkerId }
}

interface Memory {
  readonly used: number
  readonly max: number
}

function memoryOf(info: string): Memory {
  const field = (name: string): number => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1] ?? 0)
  return { used: field('used_memory'), max: field('maxmemory') }
}

/** Servers without a limit are compared by what they use, and count as less full than any with one. */
function fullnessOf({ used, max }: Memory): number {
  return max > 0 ? used / max : used / Number.MAX_SAFE_INTEGER
}

function bit(value: boolean): string {
  return value ? '1' : '0'
}
