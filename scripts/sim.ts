// npm run sim: compiles the simulation and runs it; see tests/simulation/main.ts for its options.
import { join } from 'node:path'
import { ROOT, compileProject } from './compile.ts'
import { runNode } from './run-stage.ts'

const RUN_TIMEOUT_MS = 24 * 60 * 60_000

const outDir = await compileProject('tests/simulation/tsconfig.json', 'sim')
const args = [join(outDir, 'tests', 'simulation', 'main.js'), ...process.argv.slice(2)]
const { code } = await runNode(args, { cwd: ROOT, timeoutMs: RUN_TIMEOUT_MS })
process.exitCode = code ?? 1
