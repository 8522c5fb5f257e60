// What is shown is harmless, fits, and keeps secrets.
import { describe, expect, test } from 'vitest'
import { createLogLines } from '../../src/cli/log-lines.ts'
import { maskUrls } from '../../src/cli/mask.ts'
import { renderTable } from '../../src/cli/table.ts'
import type { Column } from '../../src/cli/table.ts'
import { cellsOf, counted, fit, padded, printable, relative } from '../../src/cli/text.ts'
import { systemClock } from '../../src/runtime/clock.ts'

describe('passwords in URLs', () => {
  test.each([
    ['postgres://ada:secret@db:5432/app', 'postgres://ada:***@db:5432/app'],
    ['could not reach postgres://ada:se/c@r:et@db/app today', 'could not reach postgres://ada:***@db/app today'],
    ['postgresql://:secret@/app?host=/tmp', 'postgresql://:***@/app?host=/tmp'],
    ['redis://default:p%40ss@cache and postgres://u:x@db', 'redis://default:***@cache and postgres://u:***@db'],
    [
      'postgres://db/app?user=ada&password=secret&sslmode=require',
      'postgres://db/app?user=ada&password=***&sslmode=require',
    ],
    ['postgres://ada@db/app', 'postgres://ada@db/app'],
    ['mail ada@example.com at 10:30', 'mail ada@example.com at 10:30'],
  ])('%s', (text, masked) => {
    expect(maskUrls(text)).toBe(masked)
  })
})

test('log lines stay JSON when a password is masked in them', async () => {
  let line = ''
  const stderr = { write: (text: string) => void (line += text), isTty: false, columns: 80 }
  const log = createLogLines({ stderr, env: {} }, { json: true, level: 'info', clock: systemClock })
  const error = new Error('postgres://u:p"a\\s@s@db/x is gone')
  log.warn({ url: 'postgres://ada:secret@db/app', mail: 'ada@example.com', error }, 'lost')
  expect(JSON.parse(line)).toMatchObject({
    url: 'postgres://ada:***@db/app',
    mail: 'ada@example.com',
    error: { message: 'postgres://u:***@db/x is gone' },
  })
  line = ''
  const shown = createLogLines({ stderr, env: {} }, { json: false, level: 'info', clock: systemClock, unmasked: true })
  shown.info({ url: 'postgres://ada:secret@db/app' }, 'database')
  shown.debug({}, 'below the level')
  expect(line).toMatch(/^\d\d:\d\d:\d\d database url=postgres:\/\/ada:secret@db\/app\n$/)
})

describe('text', () => {
  test('control characters are shown, not obeyed', () => {
    expect(printable('a\u001b[31mred\u0007\r\nb\tc\u202edx')).toBe('a\\u001b[31mred\\u0007\\u000d⏎b c\\u202edx')
  })

  test('widths are counted in cells', () => {
    expect(cellsOf('abc')).toBe(3)
    expect(cellsOf('日本')).toBe(4)
    expect(cellsOf('e\u0301')).toBe(1)
    expect(cellsOf('✅')).toBe(2)
    expect(fit('hello world', 8)).toBe('hello w…')
    expect(fit('日本語', 4)).toBe('日…')
    expect(fit('abc', 0)).toBe('')
    expect(padded('日', 4)).toBe('日  ')
    expect(padded('7', 3, 'right')).toBe('  7')
  })

  test('times and counts read as people say them', () => {
    expect(relative(0, 200_500)).toBe('3m 20s ago')
    expect(relative(5_900, 0)).toBe('in 5s')
    expect(relative(0, 400)).toBe('now')
    expect([0, 1, 2].map((count) => counted(count, 'job'))).toEqual(['no jobs', '1 job', '2 jobs'])
  })
})

describe('tables', () => {
  interface Row {
    readonly name: string
    readonly count: number
    readonly text: string
  }
  const columns: readonly Column<Row>[] = [
    { title: 'NAME', of: ({ name }) => name, style: () => 'red' },
    { title: 'COUNT', of: ({ count }) => count, align: 'right' },
    { title: 'TEXT', of: ({ text }) => text, flex: true },
  ]
  const rows = [
    { name: 'mail', count: 7, text: 'a long text that will not fit' },
    { name: 'images', count: 12_345, text: '' },
  ]

  test('are aligned, and nothing is cut without a width', () => {
    expect(renderTable(columns, rows, { columns: null, color: false })).toBe(
      'NAME    COUNT  TEXT\nmail        7  a long text that will not fit\nimages  12345\n',
    )
  })

  test('are cut to the width, the flexible column first', () => {
    expect(renderTable(columns, rows, { columns: 28, color: false })).toBe(
      'NAME    COUNT  TEXT\nmail        7  a long text …\nimages  12345\n',
    )
    for (let width = 16; width < 60; width++) {
      const lines = renderTable(columns, rows, { columns: width, color: false }).split('\n')
      for (const line of lines) expect(cellsOf(line)).toBeLessThanOrEqual(width)
    }
  })

  test('colours do not count, and rows cannot break the table', () => {
    const evil = [{ name: 'a\nb\u001b[2J', count: 1, text: 'x' }]
    const table = renderTable(columns, evil, { columns: 80, color: true })
    expect(table.split('\n')).toHaveLength(3)
    expect(table).not.toContain('\u001b[2J')
    expect(table).toContain('\u001b[31ma⏎b')
  })
})
