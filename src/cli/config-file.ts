// Finding and loading `millrace.config.ts`. TypeScript is loaded by jiti, on every Node alike, so that a file
// which works on a laptop with type stripping works on a server without it.
import { existsSync } from 'node:fs'
import { readFile, realpath } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, extname, join, posix, relative, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { CliError, describeError } from './cli-error.ts'
import type { MillraceConfig } from './config.ts'

export const CONFIG_NAMES = [
  'millrace.config.ts',
  'millrace.config.mts',
  'millrace.config.js',
  'millrace.config.mjs',
] as const

export interface LoadedConfig {
  readonly path: string
  readonly config: MillraceConfig
}

/** Answers the namespace of a module; tests pass their own. */
export type LoadModule = (path: string) => Promise<unknown>

/** Root of this package, whether it runs from `src` or from `dist`. */
const PACKAGE_ROOT = fileURLToPath(new URL('../..', import.meta.url))
const FOLDERS_MAX = 100

/** In this folder or the nearest one above it. */
export function findConfig(cwd: string): string | null {
  let folder = resolve(cwd)
  for (let depth = 0; depth < FOLDERS_MAX; depth++) {
    for (const name of CONFIG_NAMES) {
      const path = join(folder, name)
      if (existsSync(path)) return path
    }
    const above = dirname(folder)
    if (above === folder) break
    folder = above
  }
  return null
}

/** `asked` is what `--config` said; without it, and without a file to be found, there is no configuration. */
export async function loadConfig(
  cwd: string,
  asked: string | undefined,
  load: LoadModule = loadModule,
): Promise<LoadedConfig | null> {
  const path = asked === undefined ? findConfig(cwd) : resolve(cwd, asked)
  if (path === null) return null
  if (!existsSync(path)) {
    throw new CliError(
      'CONFIG_NOT_FOUND',
      `there is no file ${asked}: correct --config, or write one with millrace init`,
    )
  }
  const shown = relative(cwd, path) || path
  let module: unknown
  try {
    module = await load(path)
  } catch (error) {
    if (error instanceof CliError) throw error
    const { message } = describeError(error)
    throw new CliError('CONFIG_FAILED', `${shown} could not be loaded: ${message}`, { cause: error })
  }
  return { path, config: checkConfig(module, shown) }
}

function checkConfig(module: unknown, shown: string): MillraceConfig {
  const config = isObject(module) ? module['default'] : undefined
  if (!isObject(config) || !Array.isArray(config['jobs'])) {
    throw new CliError('CONFIG_INVALID', `${shown} must say: export default defineConfig({ jobs: [sendMail, …] })`)
  }
  // The rest is checked, option by option, by createMillrace.
  return config as unknown as MillraceConfig
}

async function loadModule(path: string): Promise<unknown> {
  const alias = await ownEntries(path)
  if (!['.ts', '.mts'].includes(extname(path))) return import(pathToFileURL(path).href)
  const { createJiti } = await import('jiti')
  const cache = join(dirname(path), 'node_modules')
  const jiti = createJiti(pathToFileURL(path).href, {
    // Not in the temporary folder of the machine, where others could put something under our name.
    fsCache: existsSync(cache) && join(cache, '.cache', 'millrace'),
    alias,
  })
  return jiti.import(path)
}

/**
 * Jobs and this process must share one copy of Millrace: what a handler returns (`fail()`, `snooze()`) is known
 * by its class. A project without a copy of its own gets this one; one with another copy must use its own command.
 */
async function ownEntries(path: string): Promise<Record<string, string>> {
  const own = await realpath(PACKAGE_ROOT)
  let found: string
  try {
    found = dirname(await realpath(createRequire(path).resolve('millrace/package.json')))
  } catch {
    return entriesOf(own)
  }
  if (found === own) return {}
  const message = `this project has a millrace of its own (${relative(dirname(path), found)}), and this command belongs to another copy: use npx millrace`
  throw new CliError('CONFIG_FAILED', message)
}

async function entriesOf(root: string): Promise<Record<string, string>> {
  const manifest = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as {
    readonly exports: Readonly<Record<string, string | { readonly default: string }>>
  }
  const entries = Object.entries(manifest.exports).flatMap(([name, entry]) =>
    typeof entry === 'string' ? [] : [[posix.join('millrace', name), join(root, entry.default)] as const],
  )
  return Object.fromEntries(entries)
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}
