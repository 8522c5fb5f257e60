// `npm run bench:docs [-- FILE]`: makes docs/benchmarks.md, its charts and the block of the README from docs/data/bench.json;
// with a file of results of `npm run bench`, from that, and keeps what matters of it as docs/data/bench.json.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { digestOf } from '../bench/page/digest.ts'
import { CHARTS_FOLDER, DATA_PATH, filesOf } from '../bench/page/files.ts'
import type { Report } from '../bench/report.ts'
import { ROOT } from './compile.ts'

const [source] = process.argv.slice(2)
if (source !== undefined) write(DATA_PATH, digestOf(readReport(source)))
// From what is kept, so that the pages do not know more than it.
const report = readReport(join(ROOT, DATA_PATH))
rmSync(join(ROOT, CHARTS_FOLDER), { recursive: true, force: true })
for (const { path, text } of filesOf(report, readFileSync(join(ROOT, 'README.md'), 'utf8'))) write(path, text)

function readReport(file: string): Report {
  // What the benchmark wrote.
  const found = JSON.parse(readFileSync(file, 'utf8')) as Partial<Report>
  if (!Array.isArray(found.results) || found.started === undefined)
    throw new Error(`${file} has no results of a benchmark`)
  return found as Report
}

function write(path: string, text: string): void {
  const file = join(ROOT, path)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
  console.log(`wrote ${path}`)
}
