// Worker and producer processes of a test. They run the compiled library on plain Node, as users do: only there does
// the heartbeat have its thread, because a thread of Node 20 loads no TypeScript.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../../../scripts/compile.ts'
import { binPath, runNode } from '../../../scripts/run-stage.ts'
import { oncePerRun } from '../../support/postgres-server.ts'
import { runDirectory } from '../../support/run-directory.ts'
import type { ProducerSettings, Said, Told, WorkerSettings } from './fixtures/protocol.ts'
import { until } from './until.ts'

export interface FaultProcess {
  readonly pid: number
  /** Everything it said, in order. */
  readonly said: readonly Said[]
  readonly isAlive: boolean
  tell(told: Told): void
  signal(name: 'SIGSTOP' | 'SIGCONT' | 'SIGKILL'): void
  /** How often it told this event. */
  count(event: string): number
  /** Warnings whose text matches. */
  warnings(pattern: RegExp): readonly string[]
  /** Asks it to stop and waits; answers its exit code. */
  stop(): Promise<number | null>
}

export interface Books {
  readonly ledger: string
  readonly runs: string
}

export const COMPILE_MAX_MS = 120_000
const START_MAX_MS = 30_000
const STOP_MAX_MS = 20_000

export function startWorker(files: Books, settings: Partial<WorkerSettings>): Promise<FaultProcess> {
  const usual = { runs: files.runs, concurrency: 10, heartbeatMs: 2_500, ttlMs: 10_000, poolMax: 4 }
  return start('worker', { ...usual, ...settings })
}

export function startProducer(files: Books, settings: Partial<ProducerSettings>): Promise<FaultProcess> {
  const usual = { ledger: files.ledger, perRound: 10, pauseMs: 10, jobsMax: 5_000 }
  return start('producer', { ...usual, ...settings })
}

async function start(name: string, settings: object): Promise<FaultProcess> {
  const process = startProcess(join(await compiledFixtures(), `${name}.js`), JSON.stringify(settings))
  await until(() => process.said.some(({ kind }) => kind === 'ready'), `the ${name} to start`, {
    limitMs: START_MAX_MS,
    goesOn: () => process.isAlive,
  })
  return process
}

function startProcess(path: string, settings: string): FaultProcess {
  const child = fork(path, [settings], { execArgv: [], stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const said: Said[] = []
  let isAlive = true
  child.on('message', (message) => said.push(message as Said)) // sent by a fixture
  const exited = once(child, 'exit').then(([code]) => {
    isAlive = false
    return code as number | null // of the event
  })
  return {
    pid: child.pid ?? 0,
    said,
    get isAlive() {
      return isAlive
    },
    tell(told) {
      if (child.connected) child.send(told)
    },
    signal(name) {
      if (isAlive) child.kill(name)
    },
    count: (event) => said.filter((one) => one.kind === 'event' && one.name === event).length,
    warnings: (pattern) =>
      said.flatMap((one) => (one.kind === 'warned' && pattern.test(one.message) ? [one.message] : [])),
    async stop() {
      if (child.connected) child.send('stop' satisfies Told)
      await until(() => !isAlive, `process ${child.pid} to stop`, { limitMs: STOP_MAX_MS })
      return exited
    },
  }
}

/** Once per test run, beside a link to the packages. */
export async function compiledFixtures(): Promise<string> {
  const home = join(await runDirectory(), 'fault-fixtures')
  const done = join(home, 'done')
  const find = (): true | undefined => (existsSync(done) ? true : undefined)
  await oncePerRun(home, find, async () => {
    mkdirSync(home, { recursive: true })
    const args = [binPath('typescript'), '-p', join(ROOT, 'tests/postgres/faults/tsconfig.json'), '--outDir', home]
    const { code } = await runNode(args, { cwd: ROOT, timeoutMs: COMPILE_MAX_MS })
    if (code !== 0) throw new Error('the fixtures in tests/postgres/faults do not compile')
    symlinkSync(join(ROOT, 'node_modules'), join(home, 'node_modules'))
    writeFileSync(join(home, 'package.json'), '{ "type": "module" }\n')
    writeFileSync(done, 'compiled\n')
    return true
  })
  return join(home, 'tests/postgres/faults/fixtures')
}
