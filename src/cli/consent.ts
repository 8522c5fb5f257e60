// Before something that cannot be undone: what it would do is said with its count, and a person is asked. Without
// a person there is no question, only `--yes`.
import { createInterface } from 'node:readline'
import { CliError } from './cli-error.ts'
import type { ConsentFlags } from './command.ts'
import type { CliIo } from './io.ts'
import { printable } from './text.ts'

export interface Intent {
  /** Continues "This will": `cancel 12 jobs of queue mail`. */
  readonly what: string
  /** A few of what is meant, one line each. */
  readonly samples?: readonly string[]
}

const SAMPLES_MAX = 5

/** First of all, so that a script without `--yes` fails every time and not only when there is something to do. */
export function checkConsent(io: CliIo, flags: ConsentFlags, command: string): void {
  if (flags.yes || flags.dryRun || canAsk(io)) return
  const message = `${command} changes things for good and nobody is here to ask: add --yes to do it, or --dry-run to see what it would do`
  throw new CliError('NEEDS_YES', message)
}

export async function askConsent(io: CliIo, flags: ConsentFlags, { what, samples = [] }: Intent): Promise<void> {
  if (flags.yes) return
  for (const sample of samples.slice(0, SAMPLES_MAX)) io.stderr.write(`  ${printable(sample)}\n`)
  if (samples.length > SAMPLES_MAX) io.stderr.write(`  and ${samples.length - SAMPLES_MAX} more\n`)
  io.stderr.write(`This will ${printable(what)}. Go on? [y/N] `)
  const answer = await readLine(io)
  if (!/^y(es)?$/i.test(answer.trim())) throw new CliError('DECLINED', 'nothing was done')
}

function canAsk(io: CliIo): boolean {
  return io.stdin.isTTY === true && io.stderr.isTty
}

/** Empty when the input ends without a line. */
function readLine(io: CliIo): Promise<string> {
  return new Promise((resolve) => {
    const lines = createInterface({ input: io.stdin, terminal: false })
    lines.once('line', (line) => {
      resolve(line)
      lines.close()
    })
    lines.once('close', () => resolve(''))
  })
}
