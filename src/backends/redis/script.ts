// A Lua script as the server knows it: by the SHA-1 of its text.
import { createHash } from 'node:crypto'

export interface Script {
  /** For messages and metrics. */
  readonly name: string
  readonly text: string
  readonly sha: string
}

export function script(name: string, text: string): Script {
  return { name, text, sha: createHash('sha1').update(text).digest('hex') }
}
