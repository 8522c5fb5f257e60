// The state file: where the guardian of a running server listens, and on which port the server does. It is a
// hint to be checked, never a proof: a crash or a reboot leaves it behind.
import { readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import type { ProcessMark } from './processes.ts'

export interface ServerState {
  /** Names one guardian; the one that the file does not name has no say over the server. */
  readonly token: string
  readonly guardian: ProcessMark
  /** A unix socket, or a named pipe on Windows. */
  readonly address: string
  readonly port: number
  /** The pid of the server. */
  readonly postmaster: number
}

export function readState(path: string): ServerState | undefined {
  try {
    const state = JSON.parse(readFileSync(path, 'utf8')) as Partial<ServerState> | null // checked right below
    const { token, guardian, address, port, postmaster } = state ?? {}
    if (typeof token !== 'string' || typeof address !== 'string' || guardian === undefined) return undefined
    if (typeof port !== 'number' || typeof postmaster !== 'number') return undefined
    return { token, guardian, address, port, postmaster }
  } catch {
    return undefined
  }
}

/** Whole or not at all. The caller holds the lock. */
export function writeState(path: string, state: ServerState): void {
  writeFileSync(`${path}.new`, `${JSON.stringify(state, undefined, 2)}\n`, { mode: 0o644 })
  renameSync(`${path}.new`, path)
}

export function removeState(path: string): void {
  rmSync(path, { force: true })
}

/** When the guardian last touched it; undefined if there is none. */
export function beatOf(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs
}
