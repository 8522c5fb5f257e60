// Which state of Millrace is measured.
import { execFileSync } from 'node:child_process'

/** As git says it, with `-dirty` where files differ from it; undefined where there is no git. */
export function commitOf(root: string): string | undefined {
  try {
    return execFileSync('git', ['describe', '--always', '--dirty', '--exclude=*'], {
      cwd: root,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim()
  } catch {
    return undefined
  }
}
