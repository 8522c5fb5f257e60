// Another program, with an end: it is told to stop when the signal aborts and killed when it does not, and of what it says
// only the last part is kept. Resolves when it is gone.
import { spawn } from 'node:child_process'
import { LIMITS } from '../core/limits.ts'
import type { Clock, Timer } from '../runtime/clock.ts'

export interface ToolRun {
  readonly program: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
  readonly signal: AbortSignal
  readonly clock: Clock
}

export interface ToolEnd {
  /** Null: it was ended by a signal. */
  readonly code: number | null
  readonly stdout: string
  /** The last lines. */
  readonly stderr: string
}

const KILL_AFTER_MS = 2_000

/** Rejects when the program cannot be started. */
export function runTool({ program, args, env, signal, clock }: ToolRun): Promise<ToolEnd> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { env: { ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
    const said = { stdout: '', stderr: '' }
    for (const name of ['stdout', 'stderr'] as const) {
      child[name].setEncoding('utf8').on('data', (text: string) => {
        said[name] = `${said[name]}${text}`.slice(-LIMITS.toolOutputBytesMax)
      })
    }
    let killer: Timer | undefined
    const stop = (): void => {
      child.kill('SIGTERM')
      killer = clock.timer(KILL_AFTER_MS, () => void child.kill('SIGKILL'), { keepAlive: true })
    }
    const over = (): void => {
      killer?.cancel()
      signal.removeEventListener('abort', stop)
    }
    child.once('error', (error) => {
      over()
      reject(error)
    })
    child.once('close', (code) => {
      over()
      resolve({ code, ...said })
    })
    signal.addEventListener('abort', stop, { once: true })
    if (signal.aborted) stop()
  })
}
