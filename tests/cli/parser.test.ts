// What is typed wrongly is answered with what to type, and help teaches.
import { Command } from 'commander'
import { describe, expect, test } from 'vitest'
import { EXIT, EXIT_MEANINGS, ERROR_EXITS, exitOf } from '../../src/cli/exit-codes.ts'
import { buildProgram } from '../../src/cli/program.ts'
import { ERROR_CATALOGUE } from '../../src/index.ts'
import { setup, start, temporaryFolder } from './harness.ts'

describe('wrong usage ends with 2 and says what to do', () => {
  test.each([
    ['jobz', "unknown command 'jobz'", 'Did you mean jobs?', 'millrace --help explains it'],
    ['jobs lst', "unknown command 'lst'", 'Did you mean ls?', 'millrace jobs --help explains it'],
    ['jobs ls --qeue mail', "unknown option '--qeue'", 'Did you mean --queue?', 'millrace jobs ls --help explains it'],
    ['jobs ls --limit many', 'whole number from 1 to 200', '--limit', 'millrace jobs ls --help'],
    ['queues set mail --rate fast', 'how many in what time', '100/m', 'millrace queues set --help'],
    ['queues pause', "missing required argument 'queue'", '', 'millrace queues pause --help'],
    ['jobs get a b', 'too many arguments', '', 'millrace jobs get --help'],
    ['migrate down', "required option '--to <version>'", '', 'millrace migrate down --help'],
  ])('%s', async (line, ...parts) => {
    const { code, out, err } = await start(line.split(' ')).done
    for (const part of parts) expect(err).toContain(part)
    expect(err.match(/error:/g)).toHaveLength(1)
    expect(out).toBe('')
    expect(code).toBe(EXIT.usage)
  })

  test('a group without its verb shows its help', async () => {
    const { code, err } = await start(['jobs']).done
    expect(err).toContain('Usage: millrace jobs')
    expect(code).toBe(EXIT.usage)
  })

  test('as JSON when JSON was asked for', async () => {
    const { code, out, err } = await start(['jobs', 'ls', '--qeue', 'mail', '--json']).done
    const { error } = JSON.parse(err) as { error: { code: string; message: string } }
    expect(error.code).toBe('USAGE')
    expect(error.message).toContain('Did you mean --queue?')
    expect(out).toBe('')
    expect(code).toBe(EXIT.usage)
  })

  test('what the library refuses is wrong usage too', async () => {
    const { run } = await setup()
    expect(await run('jobs get 42')).toMatchObject({
      code: 2,
      err: expect.stringContaining('must be a UUID') as string,
    })
    expect(await run('jobs ls --status lost')).toMatchObject({ code: 2 })
    expect(await run('jobs ls --since yesterday')).toMatchObject({
      code: 2,
      err: expect.stringContaining("'30s'") as string,
    })
    expect(await run('jobs ls --payload nonsense')).toMatchObject({ code: 2 })
  })
})

describe('help', () => {
  const lines = allCommands(buildProgram({ parts: { io: silentIo() } as never, exitCode: 0 }, '0.0.0'))

  test.each(lines.map((line) => [line.join(' ')]))(
    'millrace %s --help has a sentence, examples and exit codes',
    async (line) => {
      const { code, out, err } = await start([...line.split(' ').filter(Boolean), '--help']).done
      expect(out).toMatch(/\n\n[A-Z][^]*\.\n/)
      expect(out).toContain('Examples:\n  $ millrace ')
      expect(out).toContain('Exit codes:')
      expect(out).toContain('--json')
      expect(err).toBe('')
      expect(code).toBe(EXIT.done)
    },
  )

  test('--version prints the version', async () => {
    expect(await start(['--version']).done).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) as string,
    })
  })
})

describe('exit codes', () => {
  test('every error of the catalogue has one', () => {
    expect(Object.keys(ERROR_EXITS).sort()).toEqual(Object.keys(ERROR_CATALOGUE).sort())
  })

  test('every one has a meaning', () => {
    expect(Object.keys(EXIT_MEANINGS)).toEqual(Object.keys(EXIT))
  })

  test.each([
    ['JOB_NOT_FOUND', 3],
    ['INVALID_OPTION', 2],
    ['NOT_REPLAYABLE', 4],
    ['STORE_UNAVAILABLE', 69],
    ['WAIT_TIMEOUT', 124],
    ['NEEDS_YES', 2],
    ['ECONNREFUSED', 69],
    ['toString', 1],
    [undefined, 1],
  ])('%s ends with %i', (code, exit) => {
    expect(exitOf(code)).toBe(exit)
  })

  test('a store that refuses connections ends with 69', async () => {
    const { cwd } = await setup()
    const load = (): Promise<unknown> => Promise.reject(Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }))
    const startEmbedded = (): Promise<never> => Promise.reject(Object.assign(new Error(''), { code: 'ECONNREFUSED' }))
    expect(await start(['status'], { cwd, load }).done).toMatchObject({ code: 1 })
    const there = (): Promise<unknown> => Promise.resolve({ default: { jobs: [] } })
    const ran = await start(['status', '--json'], { cwd, load: there, startEmbedded }).done
    expect(JSON.parse(ran.err)).toEqual({ error: { code: 'ECONNREFUSED', message: 'ECONNREFUSED' } })
    expect(ran.code).toBe(69)
  })

  test('without any store there is nothing to work on', async () => {
    const { code, err } = await start(['status'], { cwd: temporaryFolder() }).done
    expect(err).toContain(
      'pass --postgres URL or --redis URL, set DATABASE_URL, or go to a folder with a millrace.config.ts',
    )
    expect(code).toBe(2)
  })
})

function silentIo() {
  const screen = { write: () => undefined, isTty: false, columns: 80 }
  return { stdout: screen, stderr: screen }
}

/** The words of every command, groups and leaves, the program itself first. */
function allCommands(command: Command, words: readonly string[] = []): readonly (readonly string[])[] {
  return [words, ...command.commands.flatMap((child) => allCommands(child, [...words, child.name()]))]
}
