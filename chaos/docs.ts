// `npm run chaos:docs -- FILE`: makes a file of results the committed one, and writes docs/reliability.md and the block of the README
// from it. Without a file: again from the committed results.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../scripts/compile.ts'
import { DATA, PAGE, renderReliability } from './render-docs.ts'
import { readReport, writeReport } from './report.ts'
import { withSummary } from './summary.ts'

try {
  write(process.argv[2])
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}

function write(file: string | undefined): void {
  const report = readReport(file ?? join(ROOT, DATA))
  if (report === undefined) throw new Error(`there is no ${file ?? DATA}: npm run chaos makes one`)
  if (file !== undefined) writeReport(join(ROOT, DATA), report)
  writeFileSync(join(ROOT, PAGE), renderReliability(report))
  const readme = join(ROOT, 'README.md')
  writeFileSync(readme, withSummary(readFileSync(readme, 'utf8'), report))
  console.log(`wrote ${file === undefined ? '' : `${DATA}, `}${PAGE} and README.md`)
}
