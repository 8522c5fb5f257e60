// What is measured or simulated is compiled by the compiler that makes the published build, and runs on
// plain Node. Under tsx every nested function is given its name at run time: 0.44 µs per closure (measured,
// Node 20), which a no-op job pays several times over and a simulated step too: 300 seeds take 41 s, not 25.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { binPath, killStagesOnExit, runNode } from './run-stage.ts'

const COMPILE_TIMEOUT_MS = 3 * 60_000

export const ROOT = dirname(dirname(fileURLToPath(import.meta.url)))

/**
 * Answers the folder of the output. It lies inside the repository, where the dependencies are found, and is
 * removed when this process ends.
 */
export async function compileProject(tsconfig: string, name: string): Promise<string> {
  mkdirSync(join(ROOT, '.millrace'), { recursive: true })
  const outDir = mkdtempSync(join(ROOT, '.millrace', `${name}-`))
  process.once('exit', () => rmSync(outDir, { recursive: true, force: true }))
  killStagesOnExit()
  const args = [binPath('typescript'), '-p', tsconfig, '--outDir', outDir]
  const { code } = await runNode(args, { cwd: ROOT, timeoutMs: COMPILE_TIMEOUT_MS })
  if (code !== 0) throw new Error(`${tsconfig} does not compile`)
  return outDir
}
