import { expect, test } from 'vitest'
import { backupLabel, backupName, backupTime, canDump, checkLabel, decideRotation, roomFor } from './backup.ts'
import { serverMajor, toolMajor } from './backup.ts'

const DAY = 24 * 60 * 60_000
const NOW = Date.UTC(2026, 7, 7, 2, 15, 30, 123)
const at = (days: number, label = 'app.millrace'): string => backupName(label, NOW - days * DAY)

test('P4 a backup is named by its label and its moment, and read back to the millisecond', () => {
  expect(backupName('app.millrace', NOW)).toBe('millrace-app.millrace-20260807T021530123Z.dump')
  expect(backupTime('app.millrace', backupName('app.millrace', NOW))).toBe(NOW)
})

test.each([
  'millrace-app.millrace-20260807T021530123Z.dump.gz',
  'millrace-app.millrace-20260231T021530123Z.dump',
  'millrace-app.millrace-x-20260807T021530123Z.dump',
  'millrace-other.millrace-20260807T021530123Z.dump',
  'millrace-app.millrace-20260807.dump',
  '../millrace-app.millrace-20260807T021530123Z.dump',
  'customers.dump',
])('P4 %s is nobody of ours', (name) => {
  expect(backupTime('app.millrace', name)).toBeNull()
})

test('P4 rotation takes what is older than its period, and never the newest one', () => {
  const names = [at(0), at(6), at(7.1), at(30), 'notes.txt', at(90, 'app.other')]
  const terms = { label: 'app.millrace', nowMs: NOW, keepMs: 7 * DAY }
  expect(decideRotation(names, terms).backups).toEqual([at(30), at(7.1)])
  expect(decideRotation([at(30), at(40)], terms).backups).toEqual([at(40)])
  expect(decideRotation([at(30)], terms).backups).toEqual([])
  // A clock that has jumped years ahead leaves one.
  expect(decideRotation(names, { ...terms, nowMs: NOW + 900 * DAY }).backups).toEqual([at(30), at(7.1), at(6)])
  expect(decideRotation([at(-400), at(0)], terms).backups).toEqual([])
})

test('P4 rotation takes parts that were left behind, but not the one that is being written', () => {
  const names = [`${at(2)}.part`, `${at(0.1)}.part`, `${at(2)}.sha256`, at(3), `${at(3)}.sha256`, 'x.part', 'x.sha256']
  const { leftovers } = decideRotation(names, { label: 'app.millrace', nowMs: NOW, keepMs: 7 * DAY })
  expect(leftovers).toEqual([`${at(2)}.part`, `${at(2)}.sha256`])
})

test('P4 names that cannot be a file get a label of their own', () => {
  expect(backupLabel('app', 'millrace')).toBe('app.millrace')
  const odd = [
    backupLabel('../etc', 'millrace'),
    backupLabel('etc', 'millrace'),
    backupLabel('日本', 'm'),
    backupLabel('', ''),
  ]
  expect(new Set(odd).size).toBe(4)
  for (const label of odd) expect(checkLabel(label)).toBe(label)
  expect(() => checkLabel('../x')).toThrow(/label/)
})

test('P4 a program reads servers of its own version and older', () => {
  expect(toolMajor('pg_dump (PostgreSQL) 15.18 (Debian 15.18-1.pgdg)')).toBe(15)
  expect(toolMajor('pg_dump (PostgreSQL) 18beta1')).toBe(18)
  expect(toolMajor('no such thing')).toBeNull()
  expect(serverMajor(180_004)).toBe(18)
  expect([canDump(15, 18), canDump(18, 18), canDump(18, 15)]).toEqual([false, true, true])
})

test('P4 the room for a backup follows from the last one, or from the tables', () => {
  const base = roomFor(0, 0)
  expect(roomFor(null, 1_000_000) - base).toBe(500_000)
  expect(roomFor(100, 1_000_000) - base).toBe(133)
})

test('P4 stores of one configuration have labels of their own', () => {
  expect(backupLabel('app', 'millrace')).toBe('app.millrace')
  expect(backupLabel('app', 'millrace', 'eu')).toBe('app.millrace.eu')
  expect(backupLabel('nightly', 'eu:west')).toMatch(/^xnightly\.euwest\.[0-9a-f]{8}$/)
  expect(backupLabel('nightly', 'eu:west')).not.toBe(backupLabel('nightly', 'euwest'))
})
