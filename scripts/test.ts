// `npm test`: every check of the project in one command, each stage with its time. All stages run even if
// one fails; the last line counts them together with the tests: `N passed, N failed`.
// Arguments go to Vitest: `npm test -- src/core` or `npm test -- -t 'a stale worker'`.
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { binPath, killStagesOnExit, runNode } from './run-stage.ts'
import type { Exit, NodeOptions } from './run-stage.ts'
import { checkEntryPoints, distDirectory } from './smoke.ts'

const MINUTE_MS = 60_000
const TOOL_TIMEOUT_MS = 3 * MINUTE_MS
const TESTS_TIMEOUT_MS = 15 * MINUTE_MS

/** What the first pass has seen on version 18 only. Of the hybrid what is about its SQL; `ledger.test.ts` asks for both by itself. */
const ON_OLDEST_POSTGRES = ['tests/transactions', 'tests/model/postgres.test.ts', 'tests/hybrid/ledger-']

interface Count {
  readonly passed: number
  readonly failed: number
  /** What to say beside the verdict. */
  readonly note?: string
}

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const lines: string[] = []
const total = { passed: 0, failed: 0 }

async function main(vitestArgs: readonly string[]): Promise<void> {
  const sandbox = mkdtempSync(join(tmpdir(), 'millrace-test-'))
  process.once('exit', () => rmSync(sandbox, { recursive: true, force: true }))
  killStagesOnExit()

  const dist = distDirectory(root, sandbox)
  await stage('typecheck', () => tool('typescript', ['-p', '.']))
  await stage('lint', () => tool('oxlint', ['--type-aware', '--deny-warnings']))
  await stage('format', () => tool('oxfmt', ['--check']))
  const built = await stage('build', () => tool('typescript', ['-p', 'tsconfig.build.json', '--outDir', dist]))
  if (built) await stage('entry points', () => entryPoints(sandbox))
  // Whoever names tests means just those.
  if (vitestArgs.length > 0) {
    await stage('tests', () => vitest(vitestArgs, join(sandbox, 'vitest.json')))
  } else {
    await stage('tests', () => vitest(['--project', 'shared', '--project', 'apart'], join(sandbox, 'vitest.json')))
    await stage('chaos', () => vitest(['--project', 'chaos'], join(sandbox, 'vitest-chaos.json')))
    await stage('processes', () => vitest(['--project', 'processes'], join(sandbox, 'vitest-processes.json')))
    await stage('commands', () => vitest(['--project', 'commands'], join(sandbox, 'vitest-commands.json')))
    const oldest = ['--project', 'shared', '--project', 'apart', ...ON_OLDEST_POSTGRES, ...filesIn('tests/postgres')]
    await stage('PostgreSQL 15', () => vitest(oldest, join(sandbox, 'vitest-15.json'), { TEST_POSTGRES: '15' }))
  }

  console.log(`\n${lines.join('\n')}\n`)
  process.exitCode = total.failed > 0 ? 1 : 0
  console.log(`${total.passed} passed, ${total.failed} failed`)
}

/** Runs, times and counts one stage; answers whether nothing in it failed. */
async function stage(name: string, run: () => Promise<Count>): Promise<boolean> {
  console.log(`\n── ${name}`)
  const startMs = performance.now()
  const { passed, failed, note } = await run().catch((error: unknown): Count => {
    console.error(error)
    return { passed: 0, failed: 1 }
  })
  const seconds = ((performance.now() - startMs) / 1000).toFixed(1).padStart(6)
  const line = `${failed === 0 ? 'ok    ' : 'FAILED'} ${name.padEnd(12)} ${seconds} s${note === undefined ? '' : `  ${note}`}`
  console.log(line)
  lines.push(line)
  total.passed += passed
  total.failed += failed
  return failed === 0
}

/** Not those of its folders: dead links, processes and what is above the backend are the same on every version. */
function filesIn(folder: string): readonly string[] {
  return readdirSync(join(root, folder)).flatMap((name) => (name.endsWith('.test.ts') ? [`${folder}/${name}`] : []))
}

async function tool(packageName: string, args: readonly string[]): Promise<Count> {
  return countExit(await runNode([binPath(packageName), ...args], { cwd: root, timeoutMs: TOOL_TIMEOUT_MS }))
}

async function entryPoints(sandbox: string): Promise<Count> {
  const problems = await checkEntryPoints(root, sandbox)
  for (const problem of problems) console.error(problem)
  return problems.length === 0 ? { passed: 1, failed: 0 } : { passed: 0, failed: 1, note: problems.join('; ') }
}

/** The stage fails for what no test accounts for: no report, no test, an unhandled error, a run that was killed. */
async function vitest(args: readonly string[], reportPath: string, env: NodeOptions['env'] = {}): Promise<Count> {
  const command = [binPath('vitest'), 'run', '--reporter=default', '--reporter=json', `--outputFile.json=${reportPath}`]
  const exit = await runNode([...command, ...args], { cwd: root, timeoutMs: TESTS_TIMEOUT_MS, env })
  const report = readReport(reportPath)
  if (exit.timedOut || report === undefined) return countExit({ ...exit, code: null })
  const unloaded = report.testResults.filter(
    ({ status, assertionResults }) => status === 'failed' && !assertionResults.length,
  )
  const passed = report.numPassedTests
  const failed = report.numFailedTests + unloaded.length
  const skipped = report.numPendingTests + report.numTodoTests
  const accounted = failed > 0 || (exit.code === 0 && passed > 0)
  return {
    passed: passed + (accounted ? 1 : 0),
    failed: failed + (accounted ? 0 : 1),
    note:
      passed + failed === 0
        ? 'no test ran'
        : `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`,
  }
}

interface VitestReport {
  readonly numPassedTests: number
  readonly numFailedTests: number
  readonly numPendingTests: number
  readonly numTodoTests: number
  readonly testResults: readonly { readonly status: string; readonly assertionResults: readonly unknown[] }[]
}

function readReport(path: string): VitestReport | undefined {
  try {
    // Written by Vitest's own JSON reporter just now.
    return JSON.parse(readFileSync(path, 'utf8')) as VitestReport
  } catch {
    return undefined
  }
}

function countExit({ code, timedOut }: Exit): Count {
  if (code === 0) return { passed: 1, failed: 0 }
  return { passed: 0, failed: 1, note: timedOut ? 'killed: it took too long' : `exit ${code ?? 'by a signal'}` }
}

await main(process.argv.slice(2))
