// Log files on a real disk: what goes, what stays, and that nothing outside of the directory is ever reached.
import { existsSync, mkdirSync, readdirSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { cleanLogs } from '../../src/tasks/logs.ts'
import { contextOf, folder } from './support.ts'

const DAY_S = 24 * 60 * 60

function write(path: string, days: number): string {
  writeFileSync(path, 'x'.repeat(10))
  const at = Date.now() / 1000 - days * DAY_S
  utimesSync(path, at, at)
  return path
}

test('P4 log files of over 14 days go; others, links and directories stay', async () => {
  const [dir, outside] = [folder(), folder()]
  const target = write(join(outside, 'precious.log'), 90)
  write(join(dir, 'old.log'), 15)
  write(join(dir, 'old.log.3.gz'), 40)
  write(join(dir, 'new.log'), 13)
  write(join(dir, 'ledger.db'), 400)
  symlinkSync(target, join(dir, 'link.log'))
  symlinkSync(outside, join(dir, 'elsewhere.log'))
  mkdirSync(join(dir, 'folder.log'))
  write(join(dir, 'folder.log', 'inner.log'), 90)

  const dry = await cleanLogs(contextOf(), { dir, dryRun: true })
  expect(dry).toMatchObject({ dryRun: true, counts: { files: 2 }, bytes: 20 })
  expect(readdirSync(dir)).toHaveLength(7)

  const result = await cleanLogs(contextOf(), { dir })
  expect(result).toMatchObject({ outcome: 'done', counts: { files: 2 }, bytes: 20, left: null, warnings: [] })
  expect(readdirSync(dir).sort()).toEqual(['elsewhere.log', 'folder.log', 'ledger.db', 'link.log', 'new.log'])
  expect(existsSync(target)).toBe(true)
  expect(existsSync(join(dir, 'folder.log', 'inner.log'))).toBe(true)
  expect(await cleanLogs(contextOf(), { dir })).toMatchObject({ counts: { files: 0 } })
})

test('P4 the period can be chosen, and a run that is out of time says what is left', async () => {
  const dir = folder()
  for (let no = 0; no < 5; no++) write(join(dir, `a.log.${no}`), 2)
  let nowMs = 0
  const { runtime, ...context } = contextOf()
  const clock = { ...runtime.clock, monoMs: () => (nowMs += 10) }
  const cut = await cleanLogs({ ...context, runtime: { ...runtime, clock } }, { dir, keep: '1d', maxTime: 35 })
  expect(cut.outcome).toBe('partial')
  expect(cut.left).toContain('next run')
  expect(readdirSync(dir).length).toBeGreaterThan(0)
  await cleanLogs(contextOf(), { dir, keep: '1d' })
  expect(readdirSync(dir)).toEqual([])
})

test('P4 a clock of this host that jumped ahead makes no file old', async () => {
  const dir = folder()
  write(join(dir, 'new.log'), 1)
  const { runtime, ...context } = contextOf()
  const clock = { ...runtime.clock, nowMs: () => Date.now() + 400 * DAY_S * 1000 }
  expect(await cleanLogs({ ...context, runtime: { ...runtime, clock } }, { dir })).toMatchObject({
    counts: { files: 0 },
  })
})

test.each([{ dir: 'logs' }, { dir: '/' }, { dir: '/nowhere/at/all' }, { keep: 'long' }, { folder: '/x' }])(
  'P4 %o is refused',
  async (options) => {
    await expect(cleanLogs(contextOf(), options as never)).rejects.toMatchObject({
      code: expect.stringMatching(/^INVALID_/) as string,
    })
  },
)

test('P4 whoever stops the process stops the task', async () => {
  const stop = new AbortController()
  stop.abort(new Error('the process ends'))
  await expect(cleanLogs(contextOf({ signal: stop.signal }), { dir: folder() })).rejects.toThrow('the process ends')
})
