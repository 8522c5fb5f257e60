// `npm run chaos:docs`: writes docs/reliability.md and the block of the README from the committed results. To make those of a run the committed
// ones: `npm run chaos -- --json docs/data/chaos.json`.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../scripts/compile.ts'
import { DATA, PAGE, renderReliability } from './render-docs.ts'
import { readReport } from './report.ts'
import { withSummary } from './summary.ts'

const report = readReport(join(ROOT, DATA))
if (report === undefined) throw new Error(`there is no ${DATA}: npm run chaos -- --json ${DATA}`)
writeFileSync(join(ROOT, PAGE), renderReliability(report))
const readme = join(ROOT, 'README.md')
writeFileSync(readme, withSummary(readFileSync(readme, 'utf8'), report))
console.log(`wrote ${PAGE} and README.md`)
