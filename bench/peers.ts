// The systems that Millrace is measured against live in a package of their own, bench/peers, so that nobody
// who works on Millrace has to install them. The benchmark does it on first use. The package also brings the
// one Node that runs every measured process, ours and theirs.
import { execFileSync, spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

/** Tells a measured process where the peers are. */
export const PEERS_VARIABLE = 'MILLRACE_BENCH_PEERS'

const INSTALL_TIMEOUT_MS = 10 * 60_000

export interface Peers {
  readonly directory: string
  /** The program that runs every measurement. */
  readonly node: string
  readonly nodeVersion: string
  /** By package, as installed. */
  readonly versions: Readonly<Record<string, string>>
}

/**
 * Installs what is missing or of another version, and says so. Where no peer is measured nothing is installed: without
 * their Node measurements run on the one that runs the benchmark.
 */
export async function preparePeers(root: string, arePeersMeasured = true): Promise<Peers> {
  const directory = join(root, 'bench', 'peers')
  // Our own manifest.
  const { dependencies } = readJson(join(directory, 'package.json')) as { dependencies: Record<string, string> }
  const names = Object.keys(dependencies)
  const node = join(directory, 'node_modules', 'node', 'bin', process.platform === 'win32' ? 'node.exe' : 'node')
  const isReady = (): boolean =>
    existsSync(node) && names.every((name) => installedVersion(directory, name) === dependencies[name])
  if (!isReady() && !arePeersMeasured)
    return { directory, node: process.execPath, nodeVersion: process.version, versions: {} }
  if (!isReady()) {
    process.stderr.write('installing the peers and their Node into bench/peers/node_modules (once, about 220 MB)\n')
    await npmCi(directory)
    if (!isReady()) throw new Error("bench/peers is not complete after 'npm ci': are install scripts switched off?")
  }
  const versions = names.map((name) => [name, installedVersion(directory, name) ?? 'unknown'] as const)
  const nodeVersion = execFileSync(node, ['--version'], { encoding: 'utf8' }).trim()
  return { directory, node, nodeVersion, versions: Object.fromEntries(versions) }
}

/**
 * The module of a peer, in a measured process. The caller names the part of it that it uses: the types of
 * the peers are not installed where the project is checked.
 */
export async function loadPeer<Module>(name: string): Promise<Module> {
  const directory = process.env[PEERS_VARIABLE]
  if (directory === undefined) throw new Error(`${PEERS_VARIABLE} is not set: peers are loaded by 'npm run bench'`)
  const { load } = (await import(pathToFileURL(join(directory, 'load.js')).href)) as {
    load: (name: string) => Promise<Module>
  }
  return load(name)
}

function installedVersion(directory: string, name: string): string | undefined {
  const manifest = join(directory, 'node_modules', name, 'package.json')
  // The manifest of a package that npm installed.
  return existsSync(manifest) ? (readJson(manifest) as { version: string }).version : undefined
}

function npmCi(directory: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const isWindows = process.platform === 'win32'
    // Its output goes where progress goes: what the benchmark prints on stdout are results.
    const child = spawn(isWindows ? 'npm.cmd' : 'npm', ['ci', '--loglevel=error'], {
      cwd: directory,
      stdio: ['ignore', 2, 2],
      shell: isWindows,
      timeout: INSTALL_TIMEOUT_MS,
    })
    child.once('error', (error) => reject(new Error('npm could not be started', { cause: error })))
    child.once('exit', (code, signal) => {
      if (code === 0) resolve()
      else reject(new Error(`'npm ci' in bench/peers failed (${signal ?? `exit ${code}`})`))
    })
  })
}

function readJson(path: string): unknown {
  return JSON.parse(readFileSync(path, 'utf8'))
}
