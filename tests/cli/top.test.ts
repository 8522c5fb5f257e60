// `millrace top`: one look in this process, and the live screen in a real terminal on a real Redis.
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { cellsOf } from '../../src/cli/text.ts'
import { createMillrace, redis as redisBackend } from '../../src/index.ts'
import { withoutThread } from '../stores/place.ts'
import { openPseudoTerminal } from '../support/pseudo-terminal.ts'
import type { PseudoTerminal } from '../support/pseudo-terminal.ts'
import { startRedis } from '../support/redis-server.ts'
import type { RedisProcess } from '../support/redis-server.ts'
import { until } from '../support/until.ts'
import { ROOT } from '../tidy/source.ts'
import { boom, mail, noop, setup, temporaryFolder, workOff } from './harness.ts'

const ENTER = '\u001b[?1049h\u001b[?25l'
const LEAVE = '\u001b[?25h\u001b[?1049l'
// oxlint-disable-next-line no-control-regex -- what a colour looks like
const COLOUR = /\u001b\[\d+m/
const RUN_MAX_MS = 30_000

describe('one look', () => {
  test('O5 --once is plain text, also without a terminal', async () => {
    const { mill, run } = await setup()
    const failed = await mill.enqueue(boom, 'disk full')
    await workOff(mill, [failed.id])
    await mill.enqueue(noop, undefined, { delay: '1h' })
    const { code, out } = await run('top --once')
    expect(code).toBe(0)
    expect(out).toMatch(/^fragile +0 +0 +1 +- +- +- +- +1$/m)
    expect(out).toMatch(/ago +boom +fragile .* Error: disk full$/m)
    expect(out).toMatch(/^\S{12} .* running +\d\/10 +- +- /m)
    expect(out).not.toContain('\u001b')
    expect(out).not.toContain('q quit')
    const { json } = await run('top --json')
    expect(json).toMatchObject({
      health: { state: 'ok', deadLetters: 1 },
      workers: { length: 1 },
      failures: { length: 1 },
    })
  })

  test('O5 without a terminal it says what to do instead', async () => {
    const { run } = await setup()
    const { code, err } = await run('top')
    expect([code, err]).toEqual([2, expect.stringContaining('use --once')])
    expect(await run('top --interval 1ms', { tty: true })).toMatchObject({ code: 2 })
  })
})

describe('in a terminal', { timeout: 2 * RUN_MAX_MS }, () => {
  let server: RedisProcess
  beforeAll(async () => {
    server = await startRedis({ config: { maxmemory: '200mb' } })
    const mill = await createMillrace({
      jobs: [mail, noop, boom],
      backend: withoutThread(redisBackend({ url: server.url })),
    })
    const failed = await mill.enqueue(boom, 'disk full')
    const worker = await mill.work()
    await mill.result(failed.id).catch(() => undefined)
    await worker.stop()
    await mill.enqueueMany(Array.from({ length: 7 }, () => [mail, { to: 'ada' }] as const))
    await mill.stop()
  })
  afterAll(() => server.stop())

  async function top(env: NodeJS.ProcessEnv = {}, size = { columns: 100, rows: 30 }): Promise<PseudoTerminal> {
    const main = join(ROOT, 'src', 'cli', 'main.ts')
    const tsx = import.meta.resolve('tsx')
    const argv = [process.execPath, '--import', tsx, main, 'top', '--redis', server.url, '--interval', '250ms']
    const terminal = await openPseudoTerminal(argv, { ...size, cwd: temporaryFolder(), env })
    let isOver = false
    void terminal.ended.then(() => (isOver = true))
    onTestFinished(() => {
      if (!isOver) terminal.signal('SIGKILL')
    })
    await shows(terminal, /^mail +7 /m)
    return terminal
  }

  const textOf = (terminal: PseudoTerminal): string =>
    terminal.frame().join('\n').replaceAll(new RegExp(COLOUR, 'g'), '')
  const shows = (terminal: PseudoTerminal, text: RegExp): Promise<void> =>
    until(`the screen to show ${text}`, () => text.test(textOf(terminal)), { withinMs: RUN_MAX_MS })

  test('O5 draws, follows the size of the window, obeys keys, shows an outage, and gives the terminal back', async () => {
    const terminal = await top()
    expect(terminal.output()).toContain(ENTER)
    expect(terminal.frame()).toHaveLength(30)
    expect(terminal.output(), 'in colour').toMatch(COLOUR)
    await shows(terminal, /! queue mail has 7 jobs ready and no live worker/)
    expect(textOf(terminal)).toMatch(/boom +fragile/)

    terminal.resize(50, 12)
    await until('a smaller screen', () => terminal.frame().length === 12)
    for (const line of textOf(terminal).split('\n')) expect(cellsOf(line)).toBeLessThanOrEqual(50)
    terminal.resize(120, 40)
    await until('a larger screen', () => terminal.frame().length === 40)

    terminal.type('?')
    await shows(terminal, /stop and go on looking/)
    terminal.type('x')
    await shows(terminal, /^mail +7 /m)
    terminal.type('s')
    await shows(terminal, /by rate/)
    terminal.type('p')
    await shows(terminal, /paused/)
    terminal.type('p')
    await shows(terminal, /every 250ms/)

    await server.kill()
    await shows(terminal, /no answer for \d+/)
    expect(textOf(terminal), 'the last numbers stay').toMatch(/^mail +7 /m)
    await server.restart()
    await shows(terminal, /degraded {2}ready 7/)

    terminal.type('q')
    expect(await terminal.ended).toBe(0)
    expect(terminal.output().endsWith(LEAVE)).toBe(true)
  })

  test('O5 NO_COLOR takes the colours away, and a signal gives the terminal back', async () => {
    // Two at once: what takes time is the start of a process.
    const [terminal, second] = await Promise.all([
      top({ NO_COLOR: '1' }),
      top({ NO_COLOR: '1' }, { columns: 80, rows: 24 }),
    ])
    expect(terminal.output()).not.toMatch(COLOUR)
    terminal.signal('SIGTERM')
    second.type('\u0003')
    for (const ended of [terminal, second]) {
      expect(await ended.ended).toBe(130)
      expect(ended.output().endsWith(LEAVE)).toBe(true)
    }
  })
})
