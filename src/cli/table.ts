// Tables as plain text: columns as wide as their longest cell, cut to the width of the terminal if there is
// one. The column marked `flex` gives way first, then whichever is widest.
import { cellsOf, fit, padded, printable } from './text.ts'

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan'

export interface Column<Row> {
  readonly title: string
  readonly of: (row: Row) => string | number
  readonly align?: 'left' | 'right'
  /** Cut this one first. */
  readonly flex?: true
  readonly style?: (row: Row) => Style | undefined
}

export interface TableOptions {
  /** Null: as wide as it gets. */
  readonly columns: number | null
  readonly color: boolean
}

const GAP = '  '
const CELLS_MIN = 4
const CODES: Readonly<Record<Style, number>> = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 }

/** Ends with a line break; an empty table is only its head. */
export function renderTable<Row>(columns: readonly Column<Row>[], rows: readonly Row[], options: TableOptions): string {
  const cells = rows.map((row) => columns.map((column) => printable(String(column.of(row)))))
  const natural = columns.map(({ title }, index) =>
    Math.max(cellsOf(title), ...cells.map((line) => cellsOf(line[index] ?? ''))),
  )
  const widths = options.columns === null ? natural : narrowed(columns, natural, options.columns)
  const line = (texts: readonly string[], styleOf: (index: number) => Style | undefined): string =>
    texts
      .map((text, index) => {
        const width = widths[index] ?? 0
        const isLast = index === texts.length - 1
        const { align = 'left' } = columns[index] ?? {}
        const shown = fit(text, width)
        const full = isLast && align === 'left' ? shown : padded(shown, width, align)
        return painted(full, styleOf(index), options.color)
      })
      .join(GAP)
      .trimEnd()
  const head = line(
    columns.map(({ title }) => title),
    () => 'dim',
  )
  const body = cells.map((texts, at) => line(texts, (index) => columns[index]?.style?.(rows[at]!)))
  return `${[head, ...body].join('\n')}\n`
}

/** Names and values below each other. Nothing is cut: whoever looks at one thing wants all of it. */
export function renderFields(
  fields: readonly (readonly [name: string, value: string])[],
  { color }: Pick<TableOptions, 'color'>,
): string {
  const width = Math.max(0, ...fields.map(([name]) => cellsOf(name)))
  const lines = fields.map(([name, value]) => {
    return `${painted(padded(name, width), 'dim', color)}${GAP}${printable(value)}\n`
  })
  return lines.join('')
}

export function painted(text: string, style: Style | undefined, color: boolean): string {
  return color && style !== undefined && text !== '' ? `\u001b[${CODES[style]}m${text}\u001b[0m` : text
}

function narrowed<Row>(columns: readonly Column<Row>[], natural: readonly number[], total: number): readonly number[] {
  const widths = [...natural]
  const sum = (): number => widths.reduce((all, width) => all + width, 0) + GAP.length * (widths.length - 1)
  const shrink = (candidates: readonly number[]): void => {
    for (let over = sum() - total; over > 0; over = sum() - total) {
      const widest = candidates.reduce((best, index) => (widths[index]! > widths[best]! ? index : best), candidates[0]!)
      if (widths[widest]! <= CELLS_MIN) return
      // Down to the next widest at a time, so that several columns share the loss.
      const next = Math.max(CELLS_MIN, ...candidates.filter((index) => index !== widest).map((index) => widths[index]!))
      widths[widest] = Math.max(CELLS_MIN, Math.min(widths[widest]! - 1, Math.max(next, widths[widest]! - over)))
    }
  }
  const all = columns.map((_, index) => index)
  const flexible = all.filter((index) => columns[index]?.flex)
  if (flexible.length > 0) shrink(flexible)
  if (all.length > 0) shrink(all)
  return widths
}
