// The real command, once around with few jobs: it compiles, starts its servers, measures in processes of their own and writes
// the file that others read.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { Report } from '../../bench/report.ts'
import { ROOT } from '../../scripts/compile.ts'

const TIMEOUT_MS = 120_000

async function bench(...args: readonly string[]): Promise<{ readonly code: number; readonly said: string }> {
  const child = spawn(process.execPath, ['--import', 'tsx', 'bench/main.ts', ...args], { cwd: ROOT })
  onTestFinished(() => void child.kill('SIGTERM'))
  let said = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (said += chunk.toString()))
  const [code] = (await once(child, 'close')) as [number] // what a process that ended by itself answers
  return { code, said }
}

function newFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-command-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return join(folder, 'results.json')
}

test(
  'a few jobs in memory and on PostgreSQL become results, and no peer is installed for them',
  async () => {
    const file = newFile()
    const peers = join(ROOT, 'bench', 'peers', 'node_modules')
    const hadPeers = existsSync(peers)
    const only = ['--only', 'millrace:memory,millrace:postgres', '--scenario', 'drain-100']
    const { code, said } = await bench(...only, '--jobs', '200', '--runs', '1', '--json', file)
    expect(code, said).toBe(0)
    expect(existsSync(peers)).toBe(hadPeers)

    // What the command wrote; its form is looked at here.
    const report = JSON.parse(readFileSync(file, 'utf8')) as Report
    expect(report).toMatchObject({
      machine: { cores: expect.any(Number) },
      node: expect.stringMatching(/^v\d+\./),
      versions: { millrace: expect.any(String), postgresql: expect.stringMatching(/^18/) },
      durability: { 'millrace:memory': 'none: memory', 'millrace:postgres': 'fsync, synchronous_commit on' },
    })
    const rates = report.results.filter(({ metric }) => metric === 'jobs_per_s')
    expect(rates).toMatchObject(
      ['memory', 'postgres'].map((backend) => ({
        system: 'millrace',
        backend,
        scenario: 'drain-100',
        jobs: 200,
        runs: 1,
        unit: 'jobs/s',
        durability: report.durability[`millrace:${backend}`],
      })),
    )
    for (const { min, median, max } of rates) {
      expect(min).toBeGreaterThan(0)
      expect([min, max]).toEqual([median, median])
    }
  },
  TIMEOUT_MS,
)

test('a file that is there is not overwritten, and the message says how to go on with it', async () => {
  const file = newFile()
  writeFileSync(file, 'what took half an hour')
  const { code, said } = await bench('--only', 'millrace:memory', '--json', file)
  expect(code).toBe(1)
  expect(said).toContain(`--resume ${file}`)
  expect(readFileSync(file, 'utf8')).toBe('what took half an hour')
})
