// Prometheus' own checker of metrics. Where it is not installed its Debian package is downloaded and unpacked into a cache in
// the directory for temporary files: nothing is installed, and no service is started.
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { delimiter, join } from 'node:path'

const CACHE = join(tmpdir(), `millrace-tests-${userInfo().uid}`)
const DOWNLOAD_MAX_MS = 2 * 60_000

/** What `promtool check metrics` says; empty when there is nothing to say. */
export function checkMetricsText(text: string): { readonly status: number | null; readonly says: string } {
  const { status, stdout, stderr } = spawnSync(promtool(), ['check', 'metrics'], { input: text, encoding: 'utf8' })
  return { status, says: `${stdout}${stderr}` }
}

function promtool(): string {
  const dirs = (process.env['PATH'] ?? '').split(delimiter)
  const installed = dirs.map((dir) => join(dir, 'promtool')).find((path) => existsSync(path))
  if (installed !== undefined) return installed
  const home = join(CACHE, 'prometheus')
  const program = join(home, 'usr/bin/promtool')
  if (!existsSync(program)) unpackInto(home)
  return program
}

function unpackInto(home: string): void {
  if (!existsSync('/usr/bin/apt-get')) throw new Error('these tests need promtool: install Prometheus')
  mkdirSync(CACHE, { recursive: true, mode: 0o700 })
  const dir = mkdtempSync(join(CACHE, 'download-'))
  try {
    try {
      download(dir)
    } catch {
      // The lists of packages may be old, or there may be none.
      execFileSync('/usr/bin/apt-get', ['update', '-q'], { stdio: 'ignore', timeout: DOWNLOAD_MAX_MS })
      download(dir)
    }
    const file = readdirSync(dir).find((name) => name.endsWith('.deb'))
    if (file === undefined) throw new Error('the Debian package prometheus could not be downloaded')
    execFileSync('dpkg-deb', ['-x', join(dir, file), join(dir, 'unpacked')], { stdio: 'ignore' })
    // Another run may have been faster: what is there is the same.
    if (!existsSync(home)) renameSync(join(dir, 'unpacked'), home)
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

function download(dir: string): void {
  execFileSync('/usr/bin/apt-get', ['download', '-q', 'prometheus'], {
    cwd: dir,
    stdio: 'ignore',
    timeout: DOWNLOAD_MAX_MS,
  })
}
