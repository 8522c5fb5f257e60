// Runs one program for a stage of `npm test`: no shell, output passed through, a bound on its time.
// A stage runs in its own process group, so that a hung test runner takes its workers with it.
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

export interface Exit {
  /** Null when the program was killed or could not start. */
  readonly code: number | null
  readonly timedOut: boolean
}

export interface NodeOptions {
  readonly cwd: string
  readonly timeoutMs: number
  /** Added to the environment. */
  readonly env?: Readonly<Record<string, string>>
}

const require = createRequire(import.meta.url)
const hasGroups = process.platform !== 'win32'
const running = new Set<ChildProcess>()

/** Runs `node ...args` and answers how it ended; never rejects. */
export function runNode(args: readonly string[], { cwd, timeoutMs, env }: NodeOptions): Promise<Exit> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, args, {
      cwd,
      env: { ...process.env, ...env },
      stdio: ['ignore', 'inherit', 'inherit'],
      detached: hasGroups,
    })
    let timedOut = false
    const timer = setTimeout(() => {
      timedOut = true
      kill(child)
    }, timeoutMs)
    const end = (code: number | null): void => {
      clearTimeout(timer)
      running.delete(child)
      resolve({ code, timedOut })
    }
    running.add(child)
    child.once('exit', end)
    child.once('error', (error) => {
      console.error(`could not start ${process.execPath}: ${error.message}`)
      end(null)
    })
  })
}

/** The script behind a command of a development dependency, as `node_modules/.bin` would start it. */
export function binPath(packageName: string): string {
  const manifestPath = require.resolve(`${packageName}/package.json`)
  // A manifest that npm installed: `bin` is a path, or a map from command to path.
  const { bin } = JSON.parse(readFileSync(manifestPath, 'utf8')) as { bin: string | Record<string, string> }
  const command = packageName === 'typescript' ? 'tsc' : packageName
  const script = typeof bin === 'string' ? bin : bin[command]
  if (script === undefined) throw new Error(`${packageName} has no command '${command}'`)
  return join(dirname(manifestPath), script)
}

/** A detached child does not hear Ctrl-C or the end of its parent: pass it on. */
export function killStagesOnExit(): void {
  process.once('exit', () => running.forEach(kill))
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(1))
}

function kill(child: ChildProcess): void {
  if (child.pid === undefined) return
  try {
    if (hasGroups) process.kill(-child.pid, 'SIGKILL')
    else child.kill('SIGKILL')
  } catch {
    // It ended between the decision and the signal.
  }
}
