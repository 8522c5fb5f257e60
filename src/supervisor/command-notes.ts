// Commands on their way: notes that whoever commands writes and the supervisor it is for picks up, and a log of what
// became of them. A command is obeyed at most once; one whose supervisor dies first expires.
import type { Command, CommandArgs, CommandKind, SignedCommand } from '../core/command.ts'
import { judgeCommand, parseCommand, signCommand } from '../core/command.ts'
import { DEFAULTS, LIMITS } from '../core/limits.ts'
import { sleep } from '../runtime/clock.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { Backend } from '../store/ports.ts'

export const COMMANDS_SPACE = 'supervisor-commands'
export const COMMAND_LOG_SPACE = 'supervisor-log'

const LOG_TTL_MS = 30 * 24 * 60 * 60_000
const PAGE = 50
const SEEN_MAX = 10_000
/** In an hour; more are counted and not written down, or whoever forges them fills the store. */
const REFUSALS_LOGGED_MAX = 100
const HOUR_MS = 60 * 60_000
const REPLY_POLL_MS = 200

type CommandStore = Pick<Backend, 'notes' | 'schedules'>

export interface CommandLogEntry {
  readonly id: string
  readonly supervisor: string
  readonly kind: string
  readonly args: CommandArgs
  readonly by: string
  readonly outcome: 'done' | 'failed' | 'refused'
  /** What was done, or why not. */
  readonly reason: string
  readonly atMs: number
}

export interface Postbox {
  /** Takes what has come, carries it out and writes down what became of it. Answers how many there were. */
  empty(): Promise<number>
  readonly refused: number
}

export interface PostboxOptions {
  readonly store: CommandStore
  readonly runtime: Runtime
  readonly supervisor: string
  readonly secret: string | undefined
  /** Answers what was done. */
  readonly obey: (command: Command) => Promise<string>
  readonly onEnd: (entry: CommandLogEntry) => void
}

export function createPostbox(options: PostboxOptions): Postbox {
  const { store, runtime, supervisor, secret } = options
  const { logger, clock } = runtime
  const seen = new Set<string>()
  let refused = 0
  let hour = { beganMs: -Infinity, refusals: 0 }

  async function take(key: string, text: string): Promise<void> {
    const nowMs = await storeNowMs(store)
    const command = parseCommand(text)
    const judgement =
      command === null
        ? { ok: false as const, why: 'it cannot be read' }
        : judgeCommand(command, {
            supervisor,
            nowMs,
            wasSeen: (id) => seen.has(id),
            ...(secret !== undefined && { secret }),
          })
    // Away before it is obeyed: a command that ends this very process must not be found again.
    const isOurs = await store.notes.remove(COMMANDS_SPACE, key)
    if (!isOurs) return
    const facts = factsOf(command, key, supervisor)
    if (!judgement.ok) {
      refused += 1
      logger.warn({ command: facts.id, kind: facts.kind, by: facts.by, reason: judgement.why }, 'a command is refused')
      await finish({ ...facts, outcome: 'refused', reason: judgement.why, atMs: nowMs })
      return
    }
    remember(facts.id)
    logger.info({ command: facts.id, kind: facts.kind, by: facts.by, ...facts.args }, 'a command is carried out')
    // A restart of a large pool takes its time, and others must not wait for it.
    void options.obey(command!).then(
      (reason) => finish({ ...facts, outcome: 'done', reason, atMs: nowMs }),
      (error: unknown) => {
        const reason = error instanceof Error ? error.message : String(error)
        logger.warn({ command: facts.id, kind: facts.kind, reason }, 'a command could not be carried out')
        return finish({ ...facts, outcome: 'failed', reason, atMs: nowMs })
      },
    )
  }

  function remember(id: string): void {
    seen.add(id)
    // In the order in which they came: the oldest has expired long ago.
    if (seen.size > SEEN_MAX) for (const oldest of [...seen].slice(0, SEEN_MAX / 10)) seen.delete(oldest)
  }

  async function finish(entry: CommandLogEntry): Promise<void> {
    options.onEnd(entry)
    if (entry.outcome === 'refused' && isTooMuch()) return
    const key = `${new Date(entry.atMs).toISOString()}:${entry.id}`
    const write = { space: COMMAND_LOG_SPACE, key, value: JSON.stringify(entry), ttlMs: LOG_TTL_MS }
    await store.notes
      .put(write)
      .catch((error: unknown) => logger.warn({ command: entry.id, error }, 'what became of a command was not written'))
  }

  function isTooMuch(): boolean {
    const nowMs = clock.monoMs()
    if (nowMs - hour.beganMs > HOUR_MS) hour = { beganMs: nowMs, refusals: 0 }
    hour.refusals += 1
    return hour.refusals > REFUSALS_LOGGED_MAX
  }

  return {
    get refused() {
      return refused
    },
    async empty() {
      const found = await store.notes.list(COMMANDS_SPACE, PAGE, `${supervisor}:`)
      const own = found.filter(({ key }) => key.startsWith(`${supervisor}:`))
      for (const { key, value } of own) await take(key, value)
      return own.length
    },
  }
}

function factsOf(
  command: SignedCommand | null,
  key: string,
  supervisor: string,
): Pick<CommandLogEntry, 'id' | 'supervisor' | 'kind' | 'args' | 'by'> {
  if (command === null) return { id: key.slice(supervisor.length + 1), supervisor, kind: '?', args: {}, by: '?' }
  const { id, kind, args, by } = command
  return { id, supervisor, kind, args, by }
}

export interface CommandRequest {
  readonly supervisor: string
  readonly kind: CommandKind
  readonly args: CommandArgs
  readonly by: string
}

export async function postCommand(
  store: CommandStore,
  runtime: Pick<Runtime, 'newId'>,
  request: CommandRequest,
  secret: string | undefined,
): Promise<Command> {
  const issuedAtMs = Math.floor(await storeNowMs(store))
  const command: Command = {
    ...request,
    id: runtime.newId(),
    issuedAtMs,
    expiresAtMs: issuedAtMs + DEFAULTS.commandLifeMs,
  }
  await store.notes.put({
    space: COMMANDS_SPACE,
    key: `${command.supervisor}:${command.id}`,
    value: JSON.stringify(secret === undefined ? command : signCommand(command, secret)),
    ttlMs: LIMITS.commandLifeMaxMs,
  })
  return command
}

/** What became of it; null: nothing yet. */
export async function awaitCommand(
  store: CommandStore,
  runtime: Pick<Runtime, 'clock'>,
  command: Command,
  waitMs: number,
): Promise<CommandLogEntry | null> {
  const { clock } = runtime
  const untilMs = clock.monoMs() + waitMs
  for (;;) {
    let cursor = new Date(command.issuedAtMs - 1).toISOString()
    for (;;) {
      const page = await store.notes.list(COMMAND_LOG_SPACE, PAGE, cursor)
      const found = page.find(({ key }) => key.endsWith(`:${command.id}`))
      if (found !== undefined) return JSON.parse(found.value) as CommandLogEntry // written by a supervisor
      if (page.length < PAGE) break
      cursor = page.at(-1)!.key
    }
    if (clock.monoMs() >= untilMs) return null
    await sleep(clock, Math.min(REPLY_POLL_MS, waitMs))
  }
}

/** One clock for all hosts. */
export async function storeNowMs({ schedules }: Pick<Backend, 'schedules'>): Promise<number> {
  return (await schedules.due(0)).nowMs
}
