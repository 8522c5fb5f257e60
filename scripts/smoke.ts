// Is what we build what a user can load? The build is laid out as an installed package beside its
// declared dependencies alone, and plain Node imports every entry of `exports`. An import of a
// development dependency, a missing file or a TypeScript leftover fails here and not after publishing.
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { runNode } from './run-stage.ts'

const IMPORT_TIMEOUT_MS = 30_000

interface Manifest {
  readonly name: string
  readonly exports: Readonly<Record<string, string | Readonly<Record<string, string>>>>
  readonly dependencies?: Readonly<Record<string, string>>
}

/** Where the build must be put so that `checkEntryPoints` finds it. */
export function distDirectory(root: string, sandbox: string): string {
  return join(sandbox, 'node_modules', readManifest(root).name, 'dist')
}

/** Answers what is wrong, one line each; empty when every entry point loads. */
export async function checkEntryPoints(root: string, sandbox: string): Promise<readonly string[]> {
  const manifest = readManifest(root)
  const home = join(sandbox, 'node_modules', manifest.name)
  writeFileSync(join(home, 'package.json'), JSON.stringify(manifest))
  for (const dependency of Object.keys(manifest.dependencies ?? {})) {
    const link = join(sandbox, 'node_modules', dependency)
    mkdirSync(dirname(link), { recursive: true })
    symlinkSync(join(root, 'node_modules', dependency), link, 'junction')
  }
  const problems: string[] = []
  for (const [subpath, target] of Object.entries(manifest.exports)) {
    const files = typeof target === 'string' ? [target] : Object.values(target)
    const missing = files.filter((file) => !existsSync(join(home, file)))
    if (missing.length > 0)
      problems.push(`exports['${subpath}'] names ${missing.join(', ')}, which the build did not write`)
    else if (files.some((file) => file.endsWith('.js')))
      problems.push(...(await importOne(manifest.name, subpath, sandbox)))
  }
  return problems
}

async function importOne(packageName: string, subpath: string, sandbox: string): Promise<readonly string[]> {
  const specifier = packageName + subpath.slice(1)
  const args = ['--input-type=module', '--eval', `await import(${JSON.stringify(specifier)})`]
  const { code, timedOut } = await runNode(args, { cwd: sandbox, timeoutMs: IMPORT_TIMEOUT_MS })
  if (code === 0) return []
  return [
    timedOut
      ? `import of '${specifier}' did not end: something keeps the process alive`
      : `import of '${specifier}' failed`,
  ]
}

function readManifest(root: string): Manifest {
  // Our own manifest; npm has already checked its shape.
  return JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest
}
