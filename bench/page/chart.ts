// A bar chart as SVG, from values to text. It brings its colours for light and dark pages, and says in words what it shows.

export interface Bar {
  readonly label: string
  readonly value: number
  /** Of the runs, drawn as a thin line over the end of the bar. */
  readonly min: number
  readonly max: number
  /** What stands behind the bar. */
  readonly text: string
  readonly isOurs: boolean
}

export interface Chart {
  readonly title: string
  /** For those who do not see it. */
  readonly description: string
  readonly bars: readonly Bar[]
}

const WIDTH = 800
/** The longest name, in letters of 13 pixels. */
const LABEL_WIDTH = 300
const TEXT_WIDTH = 90
const BAR_WIDTH_MAX = WIDTH - LABEL_WIDTH - TEXT_WIDTH
const ROW_HEIGHT = 26
const BAR_HEIGHT = 16
const TOP = 44

const STYLE = `
    text { font: 13px system-ui, sans-serif; fill: #1f2328 }
    .title { font-weight: 600; font-size: 15px }
    .ours { fill: #0b6e4f }
    .peer { fill: #9aa4b2 }
    .spread { stroke: #1f2328; stroke-width: 1.5 }
    .ground { fill: #ffffff }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3 }
      .ours { fill: #3fb68b }
      .peer { fill: #6e7681 }
      .spread { stroke: #e6edf3 }
      .ground { fill: #0d1117 }
    }`

export function chartOf({ title, description, bars }: Chart): string {
  const height = TOP + bars.length * ROW_HEIGHT + 10
  const most = Math.max(...bars.map(({ max }) => max))
  const xOf = (value: number): number => LABEL_WIDTH + (most === 0 ? 0 : (value / most) * BAR_WIDTH_MAX)
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-labelledby="title description">
  <title id="title">${escaped(title)}</title>
  <desc id="description">${escaped(description)}</desc>
  <style>${STYLE}
  </style>
  <rect class="ground" width="${WIDTH}" height="${height}" rx="6"/>
  <text class="title" x="12" y="26">${escaped(title)}</text>
${bars.flatMap((bar, index) => barLines(bar, TOP + index * ROW_HEIGHT, xOf)).join('\n')}
</svg>
`
}

function barLines(bar: Bar, top: number, xOf: (value: number) => number): readonly string[] {
  const middle = top + BAR_HEIGHT / 2
  const width = Math.max(xOf(bar.value) - LABEL_WIDTH, 1)
  return [
    `  <text x="${LABEL_WIDTH - 8}" y="${middle + 4}" text-anchor="end">${escaped(bar.label)}</text>`,
    `  <rect class="${bar.isOurs ? 'ours' : 'peer'}" x="${LABEL_WIDTH}" y="${top}" width="${inPixels(width)}" height="${BAR_HEIGHT}" rx="2"/>`,
    `  <line class="spread" x1="${inPixels(xOf(bar.min))}" x2="${inPixels(xOf(bar.max))}" y1="${middle}" y2="${middle}"/>`,
    `  <text x="${inPixels(xOf(bar.max) + 6)}" y="${middle + 4}">${escaped(bar.text)}</text>`,
  ]
}

function inPixels(value: number): string {
  return String(Number(value.toFixed(1)))
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}
