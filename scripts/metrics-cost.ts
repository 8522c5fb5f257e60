// `npm run bench:metrics -- [memory|postgres] [pairs] [jobs]`: what metrics and tracing without an SDK cost, as CPU per job
// of a drain. Pairs of runs, on and off in turn, right after each other in one process: what else the machine does, and how
// the program was compiled, is then the same for both. Answers medians and quartiles. PostgreSQL: that of POSTGRES_URL, or
// the embedded one.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { startEmbedded } from '../src/backends/embedded/start-embedded.ts'
import { createMillrace, defineJob, memory } from '../src/index.ts'
import type { RunContext } from '../src/index.ts'

const [kind = 'memory', pairs = '40', asked] = process.argv.slice(2)
const jobs = Number(asked ?? (kind === 'memory' ? 30_000 : 10_000))
const CHUNK = 5_000
const WARM_UP = 6
const PAYLOAD = { to: 'somebody@example.org', body: 'x'.repeat(100) }

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void // what the flag exposes

interface Pair {
  readonly on: number
  readonly off: number
}

const dir = kind === 'memory' ? undefined : mkdtempSync(join(tmpdir(), 'millrace-cost-'))
const url = process.env['POSTGRES_URL']
const server = dir === undefined || url !== undefined ? undefined : await startEmbedded({ dir })
try {
  const found: Pair[] = []
  for (let pair = -WARM_UP; pair < Number(pairs); pair++) {
    // Who is first takes turns.
    const onFirst = pair % 2 === 0
    const first = await drain(onFirst, url ?? server?.url)
    const second = await drain(!onFirst, url ?? server?.url)
    if (pair >= 0) found.push(onFirst ? { on: first, off: second } : { on: second, off: first })
  }
  report(found)
} finally {
  await server?.stop()
  // Its guardian may need a moment to end it.
  if (dir !== undefined) rmSync(dir, { recursive: true, force: true, maxRetries: 40, retryDelay: 250 })
}

/** Jobs are enqueued in bulk, then worked off, by a Millrace of its own. Answers microseconds of CPU per job. */
async function drain(isOn: boolean, at: string | undefined): Promise<number> {
  const noop = defineJob({ name: 'noop', queue: 'cost', run: ({ input }: RunContext<typeof PAYLOAD>) => void input })
  const store = at === undefined ? { backend: memory() } : { postgres: at, schema: isOn ? 'cost_on' : 'cost_off' }
  const telemetry = isOn ? {} : { tracing: false, metrics: false }
  const mill = await createMillrace({ jobs: [noop], ...store, metrics: isOn, telemetry })
  let left = jobs
  const ended = new Promise<void>((resolve) => {
    mill.on('completed', () => {
      left -= 1
      if (left === 0) resolve()
    })
  })
  collectGarbage()
  const before = process.cpuUsage()
  for (let sent = 0; sent < jobs; sent += CHUNK) {
    await mill.enqueueMany(Array.from({ length: Math.min(CHUNK, jobs - sent) }, () => [noop, PAYLOAD] as const))
  }
  await mill.work({ concurrency: 100 })
  await ended
  const { user, system } = process.cpuUsage(before)
  await mill.stop()
  return (user + system) / jobs
}

function report(found: readonly Pair[]): void {
  const shown = (values: readonly number[], unit: string): string =>
    `${at(values, 0.5).toFixed(2)} ${unit} (${at(values, 0.25).toFixed(2)} … ${at(values, 0.75).toFixed(2)})`
  const differences = found.map(({ on, off }) => (on / off - 1) * 100)
  const text = [
    `${kind}: ${found.length} pairs, ${jobs} jobs each; median (quartiles)`,
    `  off        ${shown(
      found.map(({ off }) => off),
      'µs CPU per job',
    )}`,
    `  on         ${shown(
      found.map(({ on }) => on),
      'µs CPU per job',
    )}`,
    `  difference ${shown(differences, '%')}`,
  ]
  console.log(text.join('\n'))
}

/** The value below which this share lies. */
function at(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  const place = share * (sorted.length - 1)
  const low = sorted[Math.floor(place)] ?? Number.NaN
  const high = sorted[Math.ceil(place)] ?? Number.NaN
  return low + (high - low) * (place - Math.floor(place))
}
