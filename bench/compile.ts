// The measured code runs as it is published: compiled, on plain Node.
import { join } from 'node:path'
import { compileProject } from '../scripts/compile.ts'

/** Answers the compiled `run-one`. */
export async function compileChild(): Promise<string> {
  return join(await compileProject('bench/tsconfig.json', 'bench'), 'bench', 'run-one.js')
}
