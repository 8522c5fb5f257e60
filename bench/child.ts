// One measurement in a process of its own: nothing that ran before has warmed the compiler, filled the
// heap or left a timer behind. The cell goes in and the measurement comes out over IPC.
import { fork } from 'node:child_process'
import type { ServerAddress } from './database.ts'
import { PEERS_VARIABLE } from './peers.ts'
import type { Peers } from './peers.ts'
import type { Cell } from './plan.ts'
import type { Measurement } from './scenario.ts'

const RUN_TIMEOUT_MS = 15 * 60_000

export interface Order {
  readonly cell: Cell
  /** The servers that its backend uses. */
  readonly postgres?: ServerAddress
  readonly redis?: ServerAddress
}

export type Reply = { readonly measurement: Measurement } | { readonly error: string }

/** `script` is the compiled `run-one`. */
export function measureInChild(script: string, { node, directory }: Peers, order: Order): Promise<Measurement> {
  return new Promise((resolve, reject) => {
    const child = fork(script, [], {
      execPath: node,
      execArgv: ['--expose-gc'],
      env: { ...process.env, [PEERS_VARIABLE]: directory },
    })
    const timer = setTimeout(() => {
      child.kill('SIGKILL')
      reject(new Error(`killed: no result within ${RUN_TIMEOUT_MS / 60_000} minutes`))
    }, RUN_TIMEOUT_MS)
    let answer: Reply | undefined
    child.once('message', (reply: Reply) => {
      answer = reply
    })
    child.once('error', reject)
    // Only when it is gone, so that its end does not overlap with the next run.
    child.once('exit', (code, signal) => {
      clearTimeout(timer)
      if (answer === undefined) reject(new Error(`ended without a result (${signal ?? `exit ${code}`})`))
      else if ('error' in answer) reject(new Error(answer.error))
      else resolve(answer.measurement)
    })
    child.send(order)
  })
}
