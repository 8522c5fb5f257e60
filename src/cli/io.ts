// Everything a command takes from its process, as one value, so that tests run commands without one.
import type { Readable } from 'node:stream'

export interface Screen {
  write(text: string): void
  /** A terminal: tables are cut to its width, and colours are welcome. */
  readonly isTty: boolean
  readonly columns: number
  /** Absent without a terminal. */
  readonly rows?: number
}

export type StopSignal = 'SIGINT' | 'SIGTERM'
/** Without a listener each of them does what the system says: it ends, stops or continues the process. */
export type ControlSignal = 'SIGHUP' | 'SIGTSTP' | 'SIGCONT'

export interface CliIo {
  /** Data, and nothing else. */
  readonly stdout: Screen
  /** Logs, questions, progress and errors. */
  readonly stderr: Screen
  readonly stdin: Readable & { readonly isTTY?: boolean; setRawMode?(isOn: boolean): unknown }
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  /** While somebody listens, a signal does not end the process. Answers the way to stop listening. */
  onSignal(listener: (signal: StopSignal) => void): () => void
  onControlSignal(listener: (signal: ControlSignal) => void): () => void
  /** When the terminal has another size. Answers the way to stop listening. */
  onResize?(listener: () => void): () => void
  /** As the process ends, whatever ended it: only what can be done at once. Answers the way to stop listening. */
  onExit?(listener: () => void): () => void
  /** At once, whatever still runs. */
  exit(code: number): void
  rssBytes(): number
}
