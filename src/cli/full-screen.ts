// A terminal as a screen: the alternate buffer, no cursor, keys as they are pressed. Whatever ends the process, the terminal
// is given back as it was: by `close`, and at the last moment by the hook on the end of the process.
import type { CliIo } from './io.ts'

export interface FullScreen {
  readonly width: number
  readonly height: number
  draw(lines: readonly string[]): void
  close(): void
}

export interface FullScreenEvents {
  readonly onKey: (key: string) => void
  readonly onResize: () => void
}

const ENTER = '\u001b[?1049h\u001b[?25l\u001b[?7l'
const LEAVE = '\u001b[?7h\u001b[?25h\u001b[?1049l'
const HOME = '\u001b[H'
const CLEAR_LINE = '\u001b[K'
const CLEAR_REST = '\u001b[J'
const ROWS = 24

export function openFullScreen(
  io: Pick<CliIo, 'stdout' | 'stdin' | 'onResize' | 'onExit'>,
  events: FullScreenEvents,
): FullScreen {
  const { stdout, stdin } = io
  let isOpen = true
  const hear = (chunk: Buffer | string): void => keysOf(String(chunk)).forEach(events.onKey)
  const leave = (): void => {
    if (!isOpen) return
    isOpen = false
    stdin.off('data', hear)
    stdin.setRawMode?.(false)
    stdin.pause()
    stdout.write(LEAVE)
  }
  const offs = [io.onExit?.(leave), io.onResize?.(events.onResize)]
  stdout.write(ENTER)
  stdin.setRawMode?.(true)
  stdin.on('data', hear)
  stdin.resume()
  return {
    get width() {
      return Math.max(1, stdout.columns)
    },
    get height() {
      return Math.max(1, stdout.rows ?? ROWS)
    },
    draw(lines) {
      // Drawn over, not cleared first: nothing flickers. The last line has no break, or the screen would scroll.
      if (isOpen) stdout.write(`${HOME}${lines.map((line) => line + CLEAR_LINE).join('\r\n')}${CLEAR_REST}`)
    },
    close() {
      leave()
      offs.forEach((off) => off?.())
    },
  }
}

const NAMES: Readonly<Record<string, string>> = {
  '\u0003': 'ctrl-c',
  '\u001b': 'escape',
  '\u001b[A': 'up',
  '\u001bOA': 'up',
  '\u001b[B': 'down',
  '\u001bOB': 'down',
  '\u001b[5~': 'page-up',
  '\u001b[6~': 'page-down',
}

/** Several keys may come in one piece. */
export function keysOf(text: string): readonly string[] {
  // oxlint-disable-next-line no-control-regex -- what terminals send for keys
  const pieces = text.match(/\u001b\[[0-9;]*[A-Za-z~]|\u001bO[A-Z]|[^]/g) ?? []
  return pieces.map((piece) => NAMES[piece] ?? piece)
}
