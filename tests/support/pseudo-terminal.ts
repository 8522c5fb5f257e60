// A program in a real pseudo-terminal, by script(1): keys go in, what it draws comes out, and the size can be changed from
// outside as a window manager does it.
import { execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ensureDebianPackage } from './debian-package.ts'
import { until } from './until.ts'

export interface PseudoTerminal {
  type(keys: string): void
  resize(columns: number, rows: number): void
  /** Everything that was written so far. */
  output(): string
  /** The lines of the last whole screen, without what only positions the cursor. */
  frame(): readonly string[]
  signal(signal: NodeJS.Signals): void
  readonly ended: Promise<number>
}

const HOME = '\u001b[H'

export async function openPseudoTerminal(
  argv: readonly string[],
  options: { readonly columns: number; readonly rows: number; readonly cwd: string; readonly env?: NodeJS.ProcessEnv },
): Promise<PseudoTerminal> {
  ensureDebianPackage({ name: 'bsdutils', program: '/usr/bin/script' })
  const { columns, rows, cwd, env = {} } = options
  const dir = mkdtempSync(join(tmpdir(), 'millrace-tty-'))
  const [device, pid] = [join(dir, 'tty'), join(dir, 'pid')]
  const line = argv.map((word) => `'${word.replaceAll("'", String.raw`'\''`)}'`).join(' ')
  const command = `stty cols ${columns} rows ${rows}; echo $$ > ${pid}; tty > ${device}; exec ${line}`
  const { NO_COLOR: _, ...inherited } = process.env
  const child = spawn('/usr/bin/script', ['-q', '-f', '-e', '-c', command, '/dev/null'], {
    cwd,
    env: { ...inherited, TERM: 'xterm-256color', ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let heard = ''
  child.stdout.on('data', (chunk: Buffer) => (heard += chunk.toString()))
  const ended = new Promise<number>((resolve) => {
    child.once('close', (code) => {
      rmSync(dir, { recursive: true, force: true })
      resolve(code ?? -1)
    })
  })
  await until('the terminal to open', () => existsSync(device) && readFileSync(device, 'utf8').endsWith('\n'))
  return {
    ended,
    type: (keys) => void child.stdin.write(keys),
    // Its driver tells the program, as it does when a window changes.
    resize(wide, high) {
      const file = readFileSync(device, 'utf8').trim()
      execFileSync('stty', ['-F', file, 'cols', String(wide), 'rows', String(high)])
    },
    output: () => heard,
    frame() {
      const last = heard.slice(heard.lastIndexOf(HOME) + HOME.length)
      return last.replaceAll('\u001b[K', '').split('\u001b[J')[0]!.split(/\r*\n/)
    },
    signal: (name) => void process.kill(Number(readFileSync(pid, 'utf8')), name),
  }
}
