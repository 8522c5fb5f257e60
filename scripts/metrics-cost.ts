// `node --import tsx scripts/metrics-cost.ts [memory|postgres] [pairs] [jobs]`: what metrics and tracing without an SDK
// cost, as CPU per job of a drain. Pairs of runs, on and off in turn, each in a process of its own; the medians of both and
// the median and spread of the differences within pairs. PostgreSQL: the server of POSTGRES_URL, or the embedded one.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startEmbedded } from '../src/backends/embedded/start-embedded.ts'
import { createMillrace, defineJob, memory } from '../src/index.ts'
import type { RunContext } from '../src/index.ts'

const [what = 'memory', second = '12', third] = process.argv.slice(2)
const CHUNK = 5_000
const PAYLOAD = { to: 'somebody@example.org', body: 'x'.repeat(100) }

if (what === 'run') await measure(second === 'on', third === undefined ? 50_000 : Number(third), process.argv[5])
else await compare(what, Number(second), Number(third ?? (what === 'memory' ? 100_000 : 20_000)))

/** One drain: jobs are enqueued in bulk, then worked off. Prints microseconds of CPU per job. */
async function measure(isOn: boolean, jobs: number, url: string | undefined): Promise<void> {
  const noop = defineJob({ name: 'noop', queue: 'cost', run: ({ input }: RunContext<typeof PAYLOAD>) => void input })
  const store = url === undefined ? { backend: memory() } : { postgres: url, schema: `cost_${process.pid}` }
  const telemetry = isOn ? {} : { tracing: false, metrics: false }
  const mill = await createMillrace({ jobs: [noop], ...store, metrics: isOn, telemetry })
  const drain = async (count: number): Promise<void> => {
    let left = count
    const done = new Promise<void>((resolve) => {
      const stopHearing = mill.on('completed', () => {
        left -= 1
        if (left > 0) return
        stopHearing()
        resolve()
      })
    })
    for (let sent = 0; sent < count; sent += CHUNK) {
      await mill.enqueueMany(Array.from({ length: Math.min(CHUNK, count - sent) }, () => [noop, PAYLOAD] as const))
    }
    const worker = await mill.work({ concurrency: 100 })
    await done
    await worker.stop()
  }
  await drain(Math.min(jobs / 4, 20_000))
  globalThis.gc?.()
  const before = process.cpuUsage()
  await drain(jobs)
  const { user, system } = process.cpuUsage(before)
  await mill.stop()
  process.stdout.write(`${(user + system) / jobs}\n`)
}

async function compare(backend: string, pairs: number, jobs: number): Promise<void> {
  const dir = backend === 'memory' ? undefined : mkdtempSync(join(tmpdir(), 'millrace-cost-'))
  const server =
    dir === undefined || process.env['POSTGRES_URL'] !== undefined ? undefined : await startEmbedded({ dir })
  const url = backend === 'memory' ? undefined : (process.env['POSTGRES_URL'] ?? server?.url)
  try {
    const rows: { readonly on: number; readonly off: number }[] = []
    run(false, jobs, url) // the disk and the files of the program are warm for all pairs alike
    for (let pair = 0; pair < pairs; pair++) {
      const first = run(pair % 2 === 0, jobs, url)
      const other = run(pair % 2 !== 0, jobs, url)
      rows.push(pair % 2 === 0 ? { on: first, off: other } : { on: other, off: first })
    }
    report(backend, jobs, rows)
  } finally {
    await server?.stop()
    // Its guardian may need a moment to end it.
    if (dir !== undefined) rmSync(dir, { recursive: true, force: true, maxRetries: 40, retryDelay: 250 })
  }
}

function run(isOn: boolean, jobs: number, url: string | undefined): number {
  const flags = [...process.execArgv, '--expose-gc']
  const args = [fileURLToPath(import.meta.url), 'run', isOn ? 'on' : 'off', String(jobs)]
  return Number(execFileSync(process.execPath, [...flags, ...args, ...(url === undefined ? [] : [url])]))
}

function report(backend: string, jobs: number, rows: readonly { readonly on: number; readonly off: number }[]): void {
  const differences = rows.map(({ on, off }) => (on / off - 1) * 100)
  const shown = (values: readonly number[], unit: string): string =>
    `${at(values, 0.5).toFixed(2)} ${unit} (${at(values, 0.25).toFixed(2)} … ${at(values, 0.75).toFixed(2)})`
  const text = [
    `${backend}: ${rows.length} pairs, ${jobs} jobs each; median (quartiles)`,
    `  off        ${shown(
      rows.map(({ off }) => off),
      'µs CPU per job',
    )}`,
    `  on         ${shown(
      rows.map(({ on }) => on),
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
