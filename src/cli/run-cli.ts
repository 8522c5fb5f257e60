// One run of the command line, from its arguments to its exit code. Whatever goes wrong is said here, once.
import { readFileSync } from 'node:fs'
import { CommanderError } from 'commander'
import type { Command } from 'commander'
import { systemClock } from '../runtime/clock.ts'
import { describeError } from './cli-error.ts'
import type { Cli } from './command.ts'
import { EXIT, exitOf } from './exit-codes.ts'
import type { CliIo } from './io.ts'
import { createOutput } from './output.ts'
import type { Output } from './output.ts'
import { buildProgram } from './program.ts'
import { openMigrator, startEmbedded } from './servers.ts'
import type { CliParts } from './session.ts'

/** `argv` without node and script. Never rejects. */
export async function runCli(
  argv: readonly string[],
  io: CliIo,
  overrides: Partial<Omit<CliParts, 'io'>> = {},
): Promise<number> {
  const parts: CliParts = { io, clock: systemClock, openMigrator, startEmbedded, ...overrides }
  const cli: Cli = { parts, exitCode: EXIT.done }
  const program = buildProgram(cli, version())
  try {
    await program.parseAsync([...argv], { from: 'user' })
    return cli.exitCode
  } catch (error) {
    const json = argv.includes('--json')
    const out = createOutput(io, { json, color: !argv.includes('--no-color'), clock: parts.clock })
    if (error instanceof CommanderError) return usageError(error, out, commandOf(program, argv))
    const described = describeError(error)
    out.error(described)
    if (!json && io.env['DEBUG'] && error instanceof Error && error.stack) io.stderr.write(`${error.stack}\n`)
    return exitOf(described.code)
  }
}

function usageError(error: CommanderError, out: Output, command: string): number {
  // Help or the version was asked for and has been shown.
  if (error.exitCode === 0) return EXIT.done
  // A group without its verb: its help has been shown on stderr.
  if (error.code !== 'commander.help') {
    out.error({ code: 'USAGE', message: error.message.replace(/^error: /, '') }, `${command} --help explains it`)
  }
  return EXIT.usage
}

/** As far as the words are commands: `millrace jobs ls`. */
function commandOf(program: Command, argv: readonly string[]): string {
  const names = [program.name()]
  let at = program
  for (const word of argv) {
    const next = at.commands.find((command) => command.name() === word)
    if (next === undefined) continue
    names.push(word)
    at = next
  }
  return names.join(' ')
}

function version(): string {
  const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    readonly version: string
  }
  return manifest.version
}
