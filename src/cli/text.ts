// Text as a terminal may show it. What people put into jobs is shown to operators, so control characters are
// made visible instead of obeyed, and widths are counted as cells.
import { formatDuration } from '../core/duration.ts'

// Also what turns the direction of text: it makes a line read as something else.
const CONTROL = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu
const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u
const ZERO = /\p{Mn}|\p{Me}|[\u200b-\u200d]/u
const ASCII = /^[\u0020-\u007e]*$/

/** One line, harmless. */
export function printable(text: string): string {
  return escapeControls(text.replaceAll('\t', ' ').replaceAll('\n', '⏎'))
}

/** All but line breaks; the same in JSON text means the same. */
export function escapeControls(text: string): string {
  return text.replaceAll(CONTROL, (character) => {
    if (character === '\n') return character
    return `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`
  })
}

/** Several lines, each harmless. */
export function lines(text: string): string {
  return `${text.split('\n').map(printable).join('\n')}\n`
}

export function cellsOf(text: string): number {
  if (ASCII.test(text)) return text.length
  let cells = 0
  for (const character of text) cells += cellsOfOne(character)
  return cells
}

/** At most this many cells; what is cut ends in an ellipsis. */
export function fit(text: string, cells: number): string {
  if (cellsOf(text) <= cells) return text
  let kept = ''
  let used = 1
  for (const character of text) {
    used += cellsOfOne(character)
    if (used > cells) break
    kept += character
  }
  return cells < 1 ? '' : `${kept}…`
}

export function padded(text: string, cells: number, align: 'left' | 'right' = 'left'): string {
  const space = ' '.repeat(Math.max(0, cells - cellsOf(text)))
  return align === 'left' ? text + space : space + text
}

function cellsOfOne(character: string): number {
  if (ZERO.test(character)) return 0
  return WIDE.test(character) ? 2 : 1
}

/** `3m 20s ago`, `in 5s`, `now`. */
export function relative(atMs: number, nowMs: number): string {
  const ms = Math.round(nowMs - atMs)
  if (Math.abs(ms) < 1_000) return 'now'
  const seconds = Math.floor(Math.abs(ms) / 1_000) * 1_000
  return ms > 0 ? `${formatDuration(seconds)} ago` : `in ${formatDuration(seconds)}`
}

/** `1 job`, `2 jobs`, `no jobs`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count === 0 ? 'no' : count} ${count === 1 ? one : many}`
}

/** JSON on one line, as a person may read it in a table. */
export function inline(value: unknown): string {
  return value === null || value === undefined ? '-' : escapeControls(JSON.stringify(value))
}
