// The race as plain data and pure rules: what the scripts in lua/ do, line for line in meaning. The memory race runs it,
// and a property test runs both side by side on a real Redis.
import { isPlanted } from '../../core/planted.ts'
import { pickLane } from '../../core/priority.ts'
import type { Lane, PassedOver } from '../../core/priority.ts'
import type { WorkerId } from '../../core/job.ts'
import type { AuditReply, EpochTag, GateRefusal, Handed, HoldingsReply, HoldingsRequest, OpenReply } from './ports.ts'
import type {
  OpenRequest,
  PushReply,
  PushRequest,
  RaceConfig,
  Revoked,
  TakeReply,
  TakeRequest,
  Token,
} from './ports.ts'
import type { TokenField } from './ports.ts'

export interface RaceState {
  tag: EpochTag
  number: number
  birth: string
  identity: string
  floor: number
  config: RaceConfig
  /** What the lanes should have. */
  lengths: [number, number, number]
  passed: PassedOver
  backlog: readonly [boolean, boolean, boolean]
  parked: boolean
  /** The last take that stood here. */
  stands: StandingTake | null
  /** The last claim number, and a half once that take, which stood, was answered. */
  sessions: Map<string, number | 'dead'>
  pushers: Map<string, number>
}

export interface StandingTake {
  readonly session: WorkerId
  readonly c: number
  readonly claimNo: number
  readonly most: number
}

/** What queues share: by session the claim that stands, and who hears what is handed over. */
export interface RaceHands {
  readonly standing: Map<string, number>
  readonly hears: (session: WorkerId) => boolean
}

/** One queue: five keys, each of which can be lost alone. */
export interface RaceQueue {
  state: RaceState | null
  lanes: [string[], string[], string[]]
  /** `''` waiting, `session/c` in flight, `x` revoked; the field `#` has the tag. */
  held: Map<TokenField, string>
}

export interface RaceServer {
  readonly identity: string
  readonly isFull: boolean
}

export function emptyQueue(): RaceQueue {
  return { state: null, lanes: [[], [], []], held: new Map() }
}

export function cloneQueue({ state, lanes, held }: RaceQueue): RaceQueue {
  return {
    state: state === null ? null : cloneState(state),
    lanes: [[...lanes[0]], [...lanes[1]], [...lanes[2]]],
    held: new Map(held),
  }
}

function cloneState(state: RaceState): RaceState {
  return {
    ...state,
    lengths: [...state.lengths],
    passed: [...state.passed],
    sessions: new Map(state.sessions),
    pushers: new Map(state.pushers),
  }
}

/** The gate. Null: pass. */
export function refusalOf(queue: RaceQueue, server: RaceServer, tag: EpochTag): GateRefusal | null {
  const { state } = queue
  const refuse = (why: GateRefusal['why']): GateRefusal => ({ why, redisId, epoch: state?.tag ?? '' })
  const redisId = state?.identity === '-' ? '-' : server.identity
  if (state === null || !isTag(state, tag)) return refuse('EPOCH')
  if (state.identity !== redisId && !isPlanted('hybrid-identity-ignored')) return refuse('IDENTITY')
  const isWhole =
    queue.held.get('#') === state.tag && queue.lanes.every((lane, at) => lane.length === state.lengths[at])
  return isWhole || isPlanted('hybrid-torn-ignored') ? null : refuse('TORN')
}

function isTag(state: RaceState, tag: EpochTag): boolean {
  return state.tag === tag || (isPlanted('hybrid-birth-ignored') && state.number === Number(tag.split('.')[0]))
}

export function open(queue: RaceQueue, server: RaceServer, request: OpenRequest, birth: string): OpenReply {
  const { epoch, redisId, firstLease, version, paused, lowerLaneShare } = request
  const { state } = queue
  if (redisId !== '-' && redisId !== server.identity) return { kind: 'identity', redisId: server.identity }
  if (state !== null && state.number > epoch) return { kind: 'ahead', epoch: state.number }
  if (state !== null && state.number === epoch) return { kind: 'open', birth: state.birth }
  const tag = `${epoch}.${birth}`
  queue.lanes = [[], [], []]
  queue.held = new Map([['#', tag]])
  queue.state = {
    tag,
    number: epoch,
    birth,
    identity: redisId,
    floor: firstLease,
    config: { version, paused, lowerLaneShare },
    lengths: [0, 0, 0],
    passed: [0, 0, 0],
    backlog: [false, false, false],
    parked: false,
    stands: null,
    sessions: new Map(),
    pushers: new Map(),
  }
  return { kind: 'open', birth }
}

export interface PushDone {
  readonly reply: PushReply
  readonly rings: boolean
  /** To whom something was handed over. */
  readonly handed: (Omit<Handed, 'queue'> & { readonly session: WorkerId }) | null
}

/** Torn: a token came twice in one call. */
export function push(
  queue: RaceQueue,
  state: RaceState,
  server: RaceServer,
  request: PushRequest,
  hands: RaceHands,
): PushDone | 'torn' {
  const { pusher, tokens, backlog, window } = request
  const done = (isFull: boolean, rings: boolean, handed: PushDone['handed'] = null): PushDone => ({
    reply: { isFull, depths: [...state.lengths], backlog: state.backlog },
    rings,
    handed,
  })
  for (const lane of [0, 1, 2] as const) {
    const coming = tokens.filter((token) => token.lane === lane).length
    if (coming > 0 && state.lengths[lane] + coming > 2 * window) return done(true, false)
  }
  const before = state.pushers.get(pusher) ?? -1
  const isNew = ({ text, lease }: Token): boolean =>
    (lease >= state.floor || isPlanted('hybrid-floor-ignored')) &&
    (lease > before || isPlanted('hybrid-pusher-ignored')) &&
    !queue.held.has(nameOf(text))
  const fresh = tokens.filter(isNew)
  if (fresh.length > 0 && server.isFull) return done(true, false)
  if (new Set(fresh.map(({ text }) => nameOf(text))).size < fresh.length) {
    queue.held.delete('#')
    return 'torn'
  }
  const handed = handOver(queue, state, fresh, hands)
  const rest = handed === null ? fresh : inLaneOrder(fresh).slice(handed.texts.length)
  for (const { lane, text } of rest) {
    queue.lanes[lane].push(text)
    state.lengths[lane] += 1
    queue.held.set(nameOf(text), '')
  }
  if (backlog !== null) state.backlog = backlog
  if (fresh.length === 0) return done(false, false)
  state.pushers.set(pusher, Math.max(before, ...tokens.map(({ lease }) => lease)))
  const rings = state.parked && rest.length > 0
  if (rings) state.parked = false
  return done(false, rings, handed)
}

function inLaneOrder(tokens: readonly Token[]): readonly Token[] {
  return tokens.toSorted((one, other) => one.lane - other.lane)
}

/** Where nothing waits, the first of them go to the session whose take stands. */
function handOver(
  queue: RaceQueue,
  state: RaceState,
  fresh: readonly Token[],
  { standing, hears }: RaceHands,
): PushDone['handed'] {
  const { stands, tag } = state
  if (stands === null || state.config.paused || fresh.length === 0 || state.lengths.some((length) => length > 0))
    return null
  const { session, c, claimNo, most } = stands
  if (state.sessions.get(session) !== c || standing.get(session) !== claimNo || !hears(session)) return null
  const texts = inLaneOrder(fresh)
    .slice(0, most)
    .map(({ text }) => text)
  for (const text of texts) queue.held.set(nameOf(text), `${session}/${c}`)
  standing.delete(session)
  state.stands = null
  state.sessions.set(session, c + 0.5)
  return { session, tag, c, claimNo, texts }
}

/** Torn: a token that nobody knows came up. */
export function take(
  queue: RaceQueue,
  state: RaceState,
  request: TakeRequest,
  { standing }: RaceHands,
): TakeReply | 'torn' {
  const { session, c, most, done, stands } = request
  const last = state.sessions.get(session) ?? 0
  if (last === 'dead') return { kind: 'dead' }
  for (const field of done) queue.held.delete(field)
  if (c <= last && !isPlanted('hybrid-claim-number-ignored')) return { kind: 'dup' }
  const answered = last % 1 > 0 ? { answered: true } : {}
  state.sessions.set(session, c)
  if (state.config.paused) {
    state.parked = true
    if (stands !== undefined) noteStand(request, stands, true, standing)
    return { kind: 'paused', ...answered }
  }
  for (const lane of [0, 1, 2] as const) strip(queue, state, lane)
  const texts: string[] = []
  while (texts.length < most) {
    const text = popNext(queue, state)
    if (text === undefined) break
    const field = nameOf(text)
    const note = queue.held.get(field)
    if (note === undefined && !isPlanted('hybrid-torn-ignored')) {
      queue.held.delete('#')
      return 'torn'
    }
    if (note === 'x') {
      queue.held.delete(field)
      continue
    }
    queue.held.set(field, `${session}/${c}`)
    texts.push(text)
  }
  if (texts.length < most) state.parked = true
  if (stands !== undefined) stand(state, request, stands, texts.length === 0, standing)
  return { kind: 'taken', texts, ...answered }
}

function stand(
  state: RaceState,
  { session, c }: TakeRequest,
  stands: Exclude<TakeRequest['stands'], undefined>,
  isEmptyHanded: boolean,
  standing: RaceHands['standing'],
): void {
  const isStanding = isEmptyHanded && stands !== 'no-longer'
  if (isStanding) state.stands = { session, c, claimNo: stands.claimNo, most: stands.most }
  noteStand({ session }, stands, isStanding, standing)
}

/** With its last take the claim stands, in whatever queues it brought nothing; until then none of this session does. */
function noteStand(
  { session }: Pick<TakeRequest, 'session'>,
  stands: Exclude<TakeRequest['stands'], undefined>,
  isStanding: boolean,
  standing: RaceHands['standing'],
): void {
  if (isStanding && stands !== 'no-longer' && stands.isLast) standing.set(session, stands.claimNo)
  else standing.delete(session)
}

/** So many revoked tokens in front of a lane go at once. */
const STRIP_MAX = 9_010

function strip({ lanes, held }: RaceQueue, { lengths }: RaceState, lane: Lane): void {
  const isRevoked = (text: string): boolean => held.get(nameOf(text)) === 'x'
  const first = lanes[lane].findIndex((text) => !isRevoked(text))
  const gone = lanes[lane].splice(0, Math.min(first < 0 ? lanes[lane].length : first, STRIP_MAX))
  for (const text of gone) held.delete(nameOf(text))
  lengths[lane] -= gone.length
}

function popNext(queue: RaceQueue, state: RaceState): string | undefined {
  for (;;) {
    const waiting = state.lengths.map((length) => length > 0) as [boolean, boolean, boolean]
    const lane: Lane | null = pickLane(waiting, state.passed, state.config.lowerLaneShare)
    if (lane === null) return undefined
    state.lengths[lane] -= 1
    const text = queue.lanes[lane].shift()
    // Shorter than it should be: only where the gate does not look.
    if (text !== undefined) return text
  }
}

const PAGE = 1_000

/** The cursor is the last field seen; fields come in the order of their names. */
export function holdings(queue: RaceQueue, state: RaceState, request: HoldingsRequest): HoldingsReply {
  const { session, c, cursor } = request
  const last = state.sessions.get(session) ?? 0
  const raises = last !== 'dead' && (c === 'dead' || c > last)
  if (raises) state.sessions.set(session, c)
  if (state.stands?.session === session) state.stands = null
  const own = [...queue.held].filter(([field, note]) => isHeldBy(note, session) && (cursor === '0' || field > cursor))
  const fields = own.map(([field]) => field).sort()
  const page = fields.slice(0, PAGE)
  return { fields: page, cursor: fields.length > PAGE ? page.at(-1)! : '0' }
}

export function drop(
  queue: RaceQueue,
  state: RaceState,
  session: WorkerId,
  fields: readonly TokenField[],
  last: boolean,
): null {
  for (const field of fields) if (isHeldBy(queue.held.get(field), session)) queue.held.delete(field)
  if (last && state.sessions.get(session) === 'dead') state.sessions.delete(session)
  return null
}

export function revoke(queue: RaceQueue, state: RaceState, fields: readonly TokenField[]): Revoked[] {
  return fields.map((field) => {
    const note = queue.held.get(field)
    if (note === undefined) {
      state.floor = Math.max(state.floor, leaseOf(field) + 1)
      return 'absent'
    }
    const holder = holderOf(note)
    if (holder !== null) return { session: holder }
    if (!isPlanted('hybrid-revoke-ignored')) queue.held.set(field, 'x')
    return 'revoked'
  })
}

export function audit(queue: RaceQueue, state: RaceState, below: number, fields: readonly TokenField[]): AuditReply {
  state.floor = Math.max(state.floor, below)
  for (const [pusher, highest] of state.pushers) if (highest < state.floor) state.pushers.delete(pusher)
  const sessions = new Set(state.sessions.keys())
  for (const field of fields) {
    const holder = holderOf(queue.held.get(field))
    if (holder !== null) sessions.add(holder)
  }
  return {
    absent: fields.filter((field) => (queue.held.get(field) ?? 'x') === 'x'),
    sessions: [...sessions] as WorkerId[],
  }
}

/** Whether to ring. */
export function configure(state: RaceState, { version, paused, lowerLaneShare }: RaceConfig): boolean {
  if (version <= state.config.version) return false
  state.config = { version, paused, lowerLaneShare }
  if (paused || !state.parked) return false
  state.parked = false
  return true
}

function holderOf(note = ''): WorkerId | null {
  const at = note.lastIndexOf('/')
  return at < 0 ? null : (note.slice(0, at) as WorkerId) // noted by `take`
}

export function isHeldBy(note: string | undefined, session: string): boolean {
  return note?.startsWith(`${session}/`) === true
}

function nameOf(text: string): TokenField {
  return text.slice(0, text.indexOf(' '))
}

function leaseOf(field: TokenField): number {
  return Number(field.slice(field.lastIndexOf(':') + 1))
}
