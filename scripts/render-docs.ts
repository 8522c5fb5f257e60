// The documents that are derived from code, as functions from code to text. `scripts/generate.ts` writes
// them; the tidy test compares them with what is on disk.
import { EDGES } from '../src/core/edges.ts'
import type { Edge } from '../src/core/edges.ts'
import { ERROR_CATALOGUE } from '../src/core/errors.ts'
import type { ErrorEntry } from '../src/core/errors.ts'
import { METRICS } from '../src/observability/definitions.ts'
import type { Definition } from '../src/observability/definitions.ts'
import { renderAlertRules } from './render-alerts.ts'

export interface GeneratedDoc {
  /** Relative to the root of the repository. */
  readonly path: string
  readonly render: () => string
}

export const GENERATED_DOCS: readonly GeneratedDoc[] = [
  { path: 'docs/state-machine.md', render: renderStateMachine },
  { path: 'docs/errors.md', render: renderErrors },
  { path: 'docs/metrics.md', render: renderMetrics },
  { path: 'docs/alert-rules.md', render: renderAlertRules },
]

export function renderStateMachine(): string {
  const edges: [string, Edge][] = Object.entries(EDGES)
  const rows = edges.map(([name, edge]) => [
    code(name),
    edge.from.map(code).join(', ') || '(new)',
    edge.to.map(code).join(', ') || '(gone)',
    `${edge.lease ? '**lease**; ' : ''}${edge.says}`,
    edge.by.join(', '),
    edge.counts ? 'yes' : 'no',
    edge.audit === null ? '–' : code(edge.audit),
  ])
  return `${notice('src/core/edges.ts')}
# The state machine of a job

Every change of a job's status is one of these edges. A store applies an edge only while the job is in one of its *from*
statuses, and where the guard says **lease** only for the run that holds the current lease number; anything else is refused as
stale. A move towards \`queued\` passes the gates of the job and may end as \`blocked\` or \`scheduled\`.

\`\`\`mermaid
stateDiagram-v2
${diagram(edges).join('\n')}
\`\`\`

${table(['edge', 'from', 'to', 'guard', 'who may', 'counts an attempt', 'audit row'], rows)}
`
}

export function renderErrors(): string {
  const entries: [string, ErrorEntry][] = Object.entries(ERROR_CATALOGUE)
  const rows = entries.map(([name, { means, fix }]) => [code(name), means, fix])
  return `${notice('src/core/errors.ts')}
# Errors

Every error that Millrace raises on purpose is a \`MillraceError\` with a stable \`code\`, a message that says what failed, on
what, and what to do, and \`details\` for machines. Codes are never renamed or reused.

${table(['code', 'means', 'what to do'], rows)}
`
}

export function renderMetrics(): string {
  const entries: [string, Definition][] = Object.entries(METRICS)
  const rowsOf = (of: Definition['of']): string[][] =>
    entries
      .filter(([, definition]) => definition.of === of)
      .map(([name, { type, labels, help }]) => [code(name), type, labels.map(code).join(', '), help])
  const bounds = entries.flatMap(([name, one]) =>
    one.bounds === undefined ? [] : [[code(name), one.bounds.map(String).join(', ')]],
  )
  const head = ['name', 'type', 'labels', 'meaning']
  return `${notice('src/observability/definitions.ts')}
# Metrics

Times are seconds, sizes are bytes. How to get them, traces, channels and history: [observability.md](observability.md).
Labels are bounded: more pairs of queue and kind than \`metrics.series\` (300) are counted as queue \`other\`, kind \`other\`.

## Of a process

Each process counts its own: sum them over all processes. They start at 0 with the process.

${table(head, rowsOf('process'))}

## Of a store

Read from the store at the scrape, at most 5 s old, the same whoever is asked: take one, or the maximum.

${table(head, rowsOf('store'))}

## Buckets

${table(['histogram', 'bounds in seconds'], bounds)}
`
}

/** One arrow per pair of statuses, labelled with all edges between them: fifty single arrows cannot be read. */
function diagram(edges: readonly (readonly [string, Edge])[]): string[] {
  const arrows = new Map<string, string[]>()
  for (const [name, { from, to }] of edges) {
    for (const source of from.length === 0 ? ['[*]'] : from) {
      for (const target of to.length === 0 ? ['[*]'] : to) {
        const arrow = `${source} --> ${target}`
        arrows.set(arrow, [...(arrows.get(arrow) ?? []), name])
      }
    }
  }
  return [...arrows].map(([arrow, names]) => `  ${arrow}: ${names.join(', ')}`)
}

function notice(source: string): string {
  return `<!-- Generated from ${source} by \`npm run generate\`. Do not edit. -->\n`
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  return [line(head), `|${'---|'.repeat(head.length)}`, ...rows.map(line)].join('\n')
}

function code(text: string): string {
  return `\`${text}\``
}
