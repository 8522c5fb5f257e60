// docs/cli.md names every command and every option of the real parser, and none that is not there.
import type { Command } from 'commander'
import { describe, expect, test } from 'vitest'
import { EXIT, EXIT_MEANINGS } from '../../src/cli/exit-codes.ts'
import type { ExitName } from '../../src/cli/exit-codes.ts'
import { buildProgram } from '../../src/cli/program.ts'
import { readText } from '../tidy/source.ts'

const screen = { write: () => undefined, isTty: false, columns: 80 }
const program = buildProgram({ parts: { io: { stdout: screen, stderr: screen } } as never, exitCode: 0 }, '0.0.0')
const text = readText('docs/cli.md')
const sections = new Map(text.split(/^#{2,3} /m).map((part) => [part.split('\n')[0] ?? '', part]))
const leaves = leavesOf(program)
const SHARED = { '[filters](#filters)': 'Filters', '[pages](#pages)': 'Pages' }

describe('docs/cli.md', () => {
  test('has a section with an example for every command, and no others', () => {
    const documented = [...sections.keys()].filter((title) => title.startsWith('millrace '))
    expect(documented.sort()).toEqual(leaves.map(({ line }) => line).sort())
    for (const { line } of leaves) expect(sections.get(line), line).toContain(`\`\`\`sh\n${line}`)
  })

  test.each(leaves.map(({ line, command }) => [line, command] as const))(
    '%s has all its options, and no others',
    (line, command) => {
      const section = sections.get(line) ?? ''
      const shared = Object.entries(SHARED).filter(([link]) => section.includes(link))
      const whole = [section, ...shared.map(([, title]) => sections.get(title) ?? '')].join('\n')
      const documented = flagsIn(whole)
      const own = command.options.flatMap(({ short, long }) => [short, long]).filter((flag) => flag !== undefined)
      expect(own.filter((flag) => !documented.has(flag))).toEqual([])
      const known = new Set([...own, ...globals()])
      // Dead letters have one status, and the table of filters says so.
      if (line.startsWith('millrace dead ')) for (const flag of ['-s', '--status']) known.add(flag)
      expect([...flagsIn(whole, { examples: true })].filter((flag) => !known.has(flag))).toEqual([])
    },
  )

  test('has the options of every command', () => {
    expect([...flagsIn(sections.get('Options of every command') ?? '')].sort()).toEqual(globals().sort())
  })

  test('has every exit code with its meaning', () => {
    for (const name of Object.keys(EXIT) as ExitName[])
      expect(text).toContain(`| ${EXIT[name]} | ${EXIT_MEANINGS[name]} |`)
  })
})

function globals(): string[] {
  const options = program.options.flatMap(({ short, long }) => [short, long]).filter((flag) => flag !== undefined)
  return [...options, '-h', '--help']
}

/** In the text, as code: `--limit <count>`; and what the examples use. */
function flagsIn(section: string, { examples = false } = {}): ReadonlySet<string> {
  const code = [...section.matchAll(/`([^`\n]+)`|^(millrace .*)$/gm)].map(([, inline = '', example = '']) =>
    examples ? inline + example : inline,
  )
  return new Set(
    code.flatMap(
      (part) => part.replaceAll(/"[^"]*"|'[^']*'/g, '').match(/(?<![\w-])--?[a-z][\w-]*|(?<![\w-])-V/g) ?? [],
    ),
  )
}

function leavesOf(
  command: Command,
  words: readonly string[] = ['millrace'],
): readonly { readonly line: string; readonly command: Command }[] {
  if (command.commands.length === 0) return [{ line: words.join(' '), command }]
  return command.commands.flatMap((child) => leavesOf(child, [...words, child.name()]))
}
