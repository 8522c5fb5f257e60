// The files that are made of the results, as a function of them. `scripts/bench-docs.ts` writes them; a test compares them
// with what is on disk.
import type { Report } from '../report.ts'
import { chartsOf } from './charts.ts'
import { renderPage } from './page.ts'
import { renderSummary, withSummary } from './summary.ts'

export const DATA_PATH = 'docs/data/bench.json'
export const CHARTS_FOLDER = 'docs/charts'

export interface PageFile {
  /** Relative to the root of the repository. */
  readonly path: string
  readonly text: string
}

export function filesOf(report: Report, readme: string): readonly PageFile[] {
  return [
    { path: 'docs/benchmarks.md', text: renderPage(report) },
    { path: 'README.md', text: withSummary(readme, renderSummary(report)) },
    ...chartsOf(report).map(({ name, svg }) => ({ path: `${CHARTS_FOLDER}/${name}`, text: svg })),
  ]
}
