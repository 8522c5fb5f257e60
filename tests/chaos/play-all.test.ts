// A cell that hangs costs its own result and nothing more, and whoever watches is told how long it will take.
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Cell } from '../../chaos/cell.ts'
import { cellMaxMs } from '../../chaos/deadline.ts'
import { secondsLeft } from '../../chaos/estimate.ts'
import { SCENARIOS } from '../../chaos/phases/catalogue.ts'
import { playAll } from '../../chaos/play-all.ts'
import type { PlayOptions } from '../../chaos/play.ts'
import { DATA } from '../../chaos/render-docs.ts'
import { readReport } from '../../chaos/report.ts'
import { TIMES } from '../../chaos/scenario.ts'
import type { Servers } from '../../chaos/servers.ts'
import { millrace } from '../../chaos/systems/millrace.ts'
import { abandon, startProcess } from '../../chaos/start-process.ts'
import type { Program } from '../../chaos/start-process.ts'
import { unplayed } from '../../chaos/unplayed.ts'
import { ROOT } from '../tidy/source.ts'

test('a cell that hangs is told as not played; its processes and servers are ended, and the next one has others', async () => {
  const closed: string[] = []
  const serversOf = (name: string) => ({ close: async () => void closed.push(name) }) as unknown as Servers // as much as is used
  const [first, second] = [serversOf('first'), serversOf('second')]
  const abandoned: Program[] = []
  const told: Cell[] = []
  const on: Servers[] = []
  const programs: Program[] = []
  const [hangs, ends] = SCENARIOS
  const turns = [hangs!, ends!].map((scenario) => ({ scenario, system: 'millrace', backend: 'redis' as const }))
  const left = await playAll(turns, {
    program: { path: '', node: '' },
    systems: [millrace],
    times: TIMES.short,
    known: new Map(),
    servers: first,
    startServers: () => Promise.resolve(second),
    abandon: (program) => abandoned.push(program),
    tell: (cell) => told.push(cell),
    limitMs: 10,
    playOne({ servers, scenario, program }: PlayOptions) {
      programs.push(program)
      on.push(servers)
      if (scenario === hangs) return new Promise(() => undefined)
      return Promise.resolve({
        ...unplayed({ scenario: scenario.name, system: 'millrace', backend: 'redis' }, ''),
        ok: true,
      })
    },
  })
  expect(told.map(({ scenario, ok }) => [scenario, ok])).toEqual([
    [hangs!.name, false],
    [ends!.name, true],
  ])
  expect(told[0]!.note).toContain('not played to the end: it hung: no end after')
  expect(on).toEqual([first, second])
  expect(left).toBe(second)
  expect(abandoned).toEqual([programs[0]])
  expect(programs[1]).not.toBe(programs[0])
  expect(closed).toEqual(['first'])
})

test('a cell may take several times as long as any has taken', () => {
  const longestS = Math.max(...readReport(join(ROOT, DATA))!.cells.map(({ seconds }) => seconds))
  expect(cellMaxMs(TIMES.usual) / 1000).toBeGreaterThan(4 * longestS)
  expect(cellMaxMs(TIMES.usual) / 1000).toBeLessThan(20 * 60)
})

test('a program that was abandoned starts no process any more', async () => {
  const program = { path: 'none.js', node: process.execPath }
  abandon(program)
  const settings = { role: 'producer', system: 'millrace' } as Parameters<typeof startProcess>[1] // never looked at
  await expect(startProcess(program, settings)).rejects.toThrow('its cell is over')
})

test('the rest of a run takes as long as it once took, by as much as the cells of today take longer', () => {
  const known = new Map([
    ['a', 10],
    ['b', 30],
    ['c', 50],
  ])
  expect(secondsLeft(['a', 'b', 'c'], [], known)).toBe(90)
  expect(secondsLeft(['b', 'c'], [{ key: 'a', seconds: 20 }], known)).toBe(160)
  expect(secondsLeft(['new', 'newer'], [], known)).toBe(40)
})
