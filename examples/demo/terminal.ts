// The terminal as the demo uses it: frames drawn over each other on the alternate screen, plain lines
// otherwise, and everything put back however the process ends.

const ENTER = '\u001b[?1049h\u001b[?25l'
const LEAVE = '\u001b[?25h\u001b[?1049l'
const HOME = '\u001b[H'
const CLEAR_LINE = '\u001b[K'
const CLEAR_BELOW = '\u001b[J'

export class Terminal {
  /** Frames are drawn; otherwise lines are printed. */
  readonly live: boolean
  #entered = false

  constructor(plain: boolean) {
    this.live = !plain && process.stdout.isTTY && process.env['TERM'] !== 'dumb'
    process.once('exit', () => this.restore())
    // `npm start | head`: whoever read has gone, there is nobody left to show anything to.
    process.stdout.on('error', () => process.exit(0))
  }

  size(): { readonly columns: number; readonly rows: number; readonly color: boolean } {
    // Undefined without a terminal, whatever the types say.
    const { columns, rows }: { readonly columns?: number; readonly rows?: number } = process.stdout
    // https://no-color.org: any value but the empty one.
    return { columns: columns ?? 80, rows: rows ?? 24, color: this.live && !process.env['NO_COLOR'] }
  }

  frame(text: string): void {
    const start = this.#entered ? HOME : ENTER + HOME
    this.#entered = true
    process.stdout.write(`${start}${text.replaceAll('\n', `${CLEAR_LINE}\n`)}${CLEAR_LINE}${CLEAR_BELOW}`)
  }

  print(line: string): void {
    process.stdout.write(`${line}\n`)
  }

  /** May be called twice. */
  restore(): void {
    if (!this.#entered) return
    this.#entered = false
    process.stdout.write(LEAVE)
  }
}
