// How a command is put together: its flags, what it teaches with `--help`, and how its answer becomes the exit
// code. Commander parses; nothing else here knows it.
import { InvalidArgumentError } from 'commander'
import type { Command } from 'commander'
import type { Priority } from '../core/priority.ts'
import { EXIT, EXIT_MEANINGS } from './exit-codes.ts'
import type { ExitName } from './exit-codes.ts'
import type { CliParts } from './session.ts'
import type { GlobalFlags } from './settings.ts'

export interface Cli {
  readonly parts: CliParts
  /** What the command that ran has answered. */
  exitCode: number
}

export interface Lesson {
  readonly examples: readonly (readonly [line: string, says: string])[]
  /** Besides done, failed, usage and unavailable, which all have. */
  readonly exits?: readonly ExitName[]
}

const COMMON_EXITS: readonly ExitName[] = ['done', 'failed', 'usage', 'unavailable', 'interrupted']

/** After the list of options: what people type, and how the command ends. */
export function teach(command: Command, { examples, exits = [] }: Lesson): Command {
  const width = Math.max(...examples.map(([line]) => line.length))
  const lines = examples.map(([line, says]) => `  $ millrace ${line.padEnd(width)}   # ${says}`)
  const names = (Object.keys(EXIT) as ExitName[]).filter((name) => COMMON_EXITS.includes(name) || exits.includes(name))
  const codes = names.map((name) => `  ${String(EXIT[name]).padStart(3)}  ${EXIT_MEANINGS[name]}`)
  return command.addHelpText('after', `\nExamples:\n${lines.join('\n')}\n\nExit codes:\n${codes.join('\n')}`)
}

/** What the action answers is the exit code; nothing means done. */
export function runs<Flags extends object>(
  cli: Cli,
  command: Command,
  act: (flags: Flags & GlobalFlags, args: readonly string[]) => Promise<number | void>,
): Command {
  return command.action(async () => {
    // Commander has checked the flags against the options declared beside the action.
    const flags = command.optsWithGlobals<Flags & GlobalFlags>()
    cli.exitCode = (await act(flags, command.args)) ?? EXIT.done
  })
}

export interface ConsentFlags {
  readonly yes?: boolean
  readonly dryRun?: boolean
}

/** For commands that cannot be undone. */
export function destructive(command: Command): Command {
  return command.option('-y, --yes', 'do not ask').option('--dry-run', 'say what would be done, and do nothing')
}

/** For the third argument of `option`. */
export function wholeNumber(min: number, max = Number.MAX_SAFE_INTEGER): (text: string) => number {
  return (text) => {
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN
    if (value >= min && value <= max) return value
    const upTo = max === Number.MAX_SAFE_INTEGER ? `from ${min} on` : `from ${min} to ${max}`
    throw new InvalidArgumentError(`It must be a whole number ${upTo}.`)
  }
}

/** `--queue a,b --queue c` is a, b and c. */
export function list(text: string, before: readonly string[] | undefined): readonly string[] {
  const parts = text.split(',').map((part) => part.trim())
  if (parts.some((part) => part === '')) throw new InvalidArgumentError('Write names with commas between them: a,b')
  return [...(before ?? []), ...parts]
}

/** May hold commas, so it is given once per value. */
export function each(text: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), text]
}

/** A number or a word; the library says which. */
export function priority(text: string): Priority {
  return /^\d+$/.test(text) ? Number(text) : (text as Priority)
}
