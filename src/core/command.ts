// Commands to supervisors: what they say, how they are signed, and which of them are obeyed. Signed with HMAC-SHA256 over
// every field in one fixed order, so that nothing of a command can be changed, sent to somebody else or said twice.
import { createHmac, timingSafeEqual } from 'node:crypto'
import { canonicalJson } from './json.ts'
import { LIMITS } from './limits.ts'

export const COMMAND_KINDS = ['quiet', 'resume', 'stop', 'restart', 'scale'] as const
export type CommandKind = (typeof COMMAND_KINDS)[number]

export interface Command {
  readonly id: string
  /** To whom. */
  readonly supervisor: string
  readonly kind: CommandKind
  readonly args: CommandArgs
  /** Who says so; not proven by anything but the signature. */
  readonly by: string
  /** On the clock of the store. */
  readonly issuedAtMs: number
  readonly expiresAtMs: number
}

export interface CommandArgs {
  readonly pool?: string
  readonly child?: string
  /** Of `scale`; null: as the autoscaler says. */
  readonly processes?: number | null
  /** Of `stop`: for running jobs. */
  readonly deadlineMs?: number
}

export interface SignedCommand extends Command {
  readonly signature?: string
}

export const SECRET_CHARS_MIN = 16

export function signCommand(command: Command, secret: string): SignedCommand {
  return { ...command, signature: mac(command, secret) }
}

export type Judgement = { readonly ok: true } | { readonly ok: false; readonly why: string }

export interface Judge {
  readonly supervisor: string
  /** Absent: whoever may write the store may command. */
  readonly secret?: string
  /** On the clock of the store. */
  readonly nowMs: number
  readonly wasSeen: (id: string) => boolean
}

/** Clocks of stores run evenly; this is for one that failed over to a replica with another clock. */
const AHEAD_MAX_MS = 60_000

export function judgeCommand(command: SignedCommand, { supervisor, secret, nowMs, wasSeen }: Judge): Judgement {
  const no = (why: string): Judgement => ({ ok: false, why })
  if (secret !== undefined) {
    if (command.signature === undefined) return no('it is not signed')
    if (!isEqual(command.signature, mac(command, secret))) return no('its signature is wrong')
  }
  if (command.supervisor !== supervisor) return no('it is for another supervisor')
  if (command.expiresAtMs - command.issuedAtMs > LIMITS.commandLifeMaxMs) return no('it would be valid for too long')
  if (command.issuedAtMs > nowMs + AHEAD_MAX_MS) return no('it comes from the future')
  if (command.expiresAtMs <= nowMs) return no('it has expired')
  return wasSeen(command.id) ? no('it was said before') : { ok: true }
}

/** Null for what is no command. */
export function parseCommand(text: string): SignedCommand | null {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return null
  }
  if (!isRecord(value) || !isRecord(value['args'])) return null
  const { id, supervisor, kind, by, issuedAtMs, expiresAtMs, signature } = value
  const { pool, child, processes, deadlineMs } = value['args']
  const known = COMMAND_KINDS.find((one) => one === kind)
  if (known === undefined || !isText(id) || !isText(supervisor) || !isText(by)) return null
  if (!Number.isFinite(issuedAtMs) || !Number.isFinite(expiresAtMs)) return null
  if (signature !== undefined && typeof signature !== 'string') return null
  if ((pool !== undefined && !isText(pool)) || (child !== undefined && !isText(child))) return null
  if (processes !== undefined && processes !== null && !isCount(processes)) return null
  if (deadlineMs !== undefined && !isCount(deadlineMs)) return null
  return {
    id,
    supervisor,
    kind: known,
    args: {
      ...(pool !== undefined && { pool }),
      ...(child !== undefined && { child }),
      ...(processes !== undefined && { processes }),
      ...(deadlineMs !== undefined && { deadlineMs }),
    },
    by,
    issuedAtMs: Number(issuedAtMs),
    expiresAtMs: Number(expiresAtMs),
    ...(signature !== undefined && { signature }),
  }
}

/** The version keeps a signature of today from meaning something else tomorrow. */
function mac({ id, supervisor, kind, args, by, issuedAtMs, expiresAtMs }: Command, secret: string): string {
  const text = canonicalJson({ version: 1, supervisor, id, kind, args: { ...args }, by, issuedAtMs, expiresAtMs })
  return createHmac('sha256', secret).update(text).digest('hex')
}

function isEqual(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)]
  return a.length === b.length && timingSafeEqual(a, b)
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value.length > 0 && value.length <= LIMITS.keyCharsMax
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}
