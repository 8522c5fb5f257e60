// Starting a child process and speaking with it. Tests pass a launch of their own.
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { isFromChild } from './messages.ts'
import type { FromChild, ToChild } from './messages.ts'

export interface Exit {
  readonly code: number | null
  readonly signal: string | null
  /** It could not even be started. */
  readonly error?: unknown
}

export interface LaunchEvents {
  readonly onMessage: (message: FromChild) => void
  /** Once, and nothing after it: the process is gone. */
  readonly onExit: (exit: Exit) => void
}

export interface Launched {
  readonly pid: number | null
  send(message: ToChild): void
  signal(name: 'SIGTERM' | 'SIGKILL'): void
}

export type Launch = (label: string, events: LaunchEvents) => Launched

/** What signs commands is none of the business of the code that jobs run. */
const SECRET_VARIABLE = 'MILLRACE_SECRET'

export function forkChild(cwd: string): Launch {
  const file = import.meta.url.endsWith('.ts') ? './child-main.ts' : './child-main.js'
  const main = fileURLToPath(new URL(file, import.meta.url))
  return (label, { onMessage, onExit }) => {
    const { [SECRET_VARIABLE]: _, ...env } = process.env
    let isGone = false
    const gone = (exit: Exit): void => {
      if (isGone) return
      isGone = true
      onExit(exit)
    }
    let child: ReturnType<typeof fork>
    try {
      // A debugger listens on one port: children cannot share it.
      const execArgv = process.execArgv.filter((argument) => !argument.startsWith('--inspect'))
      child = fork(main, [label], { cwd, env, execArgv, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
    } catch (error) {
      queueMicrotask(() => gone({ code: null, signal: null, error }))
      return { pid: null, send: () => undefined, signal: () => undefined }
    }
    child.on('message', (message: unknown) => {
      if (!isGone && isFromChild(message)) onMessage(message)
    })
    child.on('exit', (code, signal) => gone({ code, signal }))
    // Also when a signal or a message could not be sent: only one that never ran is gone by it.
    child.on('error', (error) => {
      if (child.pid === undefined) gone({ code: null, signal: null, error })
    })
    return {
      pid: child.pid ?? null,
      send(message) {
        // One that is going has closed its end; its exit follows.
        if (child.connected) child.send(message, () => undefined)
      },
      // After the exit the number may belong to somebody else.
      signal: (name) => void (!isGone && child.kill(name)),
    }
  }
}
