// What a command says. Data goes to stdout, as text for people or as one JSON document for scripts; everything
// else goes to stderr. A command calls `show` once with both forms and need not know which is wanted.
import type { Clock } from '../runtime/clock.ts'
import type { CliIo, Screen } from './io.ts'
import { maskUrls, maskUrlsInJson } from './mask.ts'
import { painted, renderFields, renderTable } from './table.ts'
import type { Column, Style, TableOptions } from './table.ts'
import { escapeControls, printable, relative } from './text.ts'

/** The version of the JSON documents: fields are added without a new one, never renamed or removed. */
export const SCHEMA_VERSION = 1

export interface Output {
  readonly json: boolean
  /** The text only when no JSON is wanted, and the other way round. */
  show(document: Readonly<Record<string, unknown>>, text: () => string): void
  /** A remark on stderr, left out of JSON runs: stderr is then for errors alone. */
  note(text: string): void
  error(error: { readonly code: string; readonly message: string }, hint?: string): void
  table<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string
  fields(fields: readonly (readonly [name: string, value: string])[]): string
  /** `3m ago` on a terminal, ISO 8601 elsewhere. */
  time(at: Date | number | null): string
  paint(text: string, style: Style): string
}

export interface OutputOptions {
  readonly json: boolean
  readonly color: boolean
  readonly clock: Clock
}

export function createOutput(io: Pick<CliIo, 'stdout' | 'stderr' | 'env'>, options: OutputOptions): Output {
  const { json, clock } = options
  const looks = (screen: Screen): TableOptions => ({
    columns: screen.isTty ? screen.columns : null,
    color: options.color && wantsColor(screen, io.env),
  })
  return {
    json,
    show(document, text) {
      if (!json) io.stdout.write(maskUrlsInJson(text()))
      // Data as it is, for whoever sends it back in; only what a terminal would obey is written as JSON can write it.
      else io.stdout.write(`${escapeControls(stringify(document))}\n`)
    },
    note(text) {
      if (!json) io.stderr.write(`${printable(maskUrls(text))}\n`)
    },
    error({ code, message }, hint) {
      const text = maskUrls(message)
      if (json) {
        io.stderr.write(`${JSON.stringify({ error: { code, message: text } })}\n`)
        return
      }
      const mark = painted('error:', 'red', looks(io.stderr).color)
      const lines = [`${mark} ${text.split('\n').map(printable).join('\n')}`, ...(hint === undefined ? [] : [hint])]
      io.stderr.write(`${lines.join('\n')}\n`)
    },
    table: (columns, rows) => renderTable(columns, rows, looks(io.stdout)),
    fields: (fields) => renderFields(fields, looks(io.stdout)),
    time(at) {
      if (at === null) return '-'
      const ms = typeof at === 'number' ? at : at.getTime()
      return io.stdout.isTty ? relative(ms, clock.nowMs()) : new Date(ms).toISOString()
    },
    paint: (text, style) => painted(text, style, looks(io.stdout).color),
  }
}

function stringify(document: Readonly<Record<string, unknown>>): string {
  return JSON.stringify({ schemaVersion: SCHEMA_VERSION, ...document }, null, 2)
}

/** https://no-color.org: any value but the empty one. */
export function wantsColor(screen: Screen, env: CliIo['env']): boolean {
  return screen.isTty && (env['NO_COLOR'] ?? '') === '' && env['TERM'] !== 'dumb'
}
