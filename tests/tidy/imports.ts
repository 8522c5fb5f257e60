// Which room of src may import which: the arrows of ARCHITECTURE.md as data. A new folder needs a row here.
import { isBuiltin } from 'node:module'
import { posix } from 'node:path'
import { importsOf, readText } from './source.ts'
import type { Import, Source } from './source.ts'

interface Room {
  /** Folders of src it may import besides itself; `*`: all but testing. */
  readonly imports: readonly string[]
  /** Modules from outside; absent: Node's own and the declared dependencies. */
  readonly modules?: readonly string[]
  /** Modules of which only types may be taken. */
  readonly types?: readonly string[]
}

const ROOMS: Readonly<Record<string, Room>> = {
  core: { imports: [], modules: ['croner', 'node:crypto'], types: ['@standard-schema/spec'] },
  store: { imports: ['core'] },
  runtime: { imports: ['core'] },
  'backends/memory': { imports: ['store', 'runtime', 'core'] },
  'backends/postgres': { imports: ['store', 'runtime', 'core'] },
  'backends/redis': { imports: ['store', 'runtime', 'core'] },
  'backends/hybrid': {
    imports: ['backends/memory', 'backends/postgres', 'backends/redis', 'store', 'runtime', 'core'],
  },
  'backends/embedded': { imports: ['store', 'runtime', 'core'] },
  client: { imports: ['store', 'runtime', 'core'] },
  worker: { imports: ['store', 'runtime', 'core'] },
  maintenance: { imports: ['store', 'runtime', 'core'] },
  observability: { imports: ['client', 'store', 'runtime', 'core'] },
  alerts: { imports: ['observability', 'client', 'maintenance', 'store', 'runtime', 'core'] },
  tasks: { imports: ['observability', 'client', 'backends/postgres', 'maintenance', 'store', 'runtime', 'core'] },
  supervisor: { imports: ['*'] },
  http: { imports: ['*'] },
  cli: { imports: ['*'] },
  testing: { imports: ['*'] },
  'index.ts': { imports: ['*'] },
  'millrace.ts': { imports: ['*'] },
  'stores.ts': { imports: ['*'] },
  'works.ts': { imports: ['client', 'worker', 'maintenance', 'store', 'runtime', 'core'] },
}

/** Peers are optional: whoever imports one loads it when it is needed, and says what is missing. */
const { dependencies = {}, peerDependencies = {} } = JSON.parse(readText('package.json')) as {
  dependencies?: Record<string, string>
  peerDependencies?: Record<string, string>
}

/** What a file of src imports and should not. */
export function importProblems(source: Source): readonly string[] {
  const own = roomOf(source.path)
  const room = own === undefined ? undefined : ROOMS[own]
  if (own === undefined || room === undefined) {
    return [`${source.path}: no row in tests/tidy/imports.ts says what this folder may import`]
  }
  const isTest = source.path.endsWith('.test.ts')
  return importsOf(source).flatMap((one) => {
    const problem = one.from.startsWith('.') ? inside(source, own, room, one, isTest) : outside(room, one, isTest)
    return problem === undefined ? [] : [`${source.at(one.node)} imports ${one.from}: ${problem}`]
  })
}

function inside(source: Source, own: string, room: Room, { from }: Import, isTest: boolean): string | undefined {
  const target = posix.join(posix.dirname(source.path), from)
  if (!target.startsWith('src/')) {
    if (/^(tests|bench)\//.test(target)) return 'src does not know its tests and benchmarks'
    return target === 'package.json' ? undefined : 'it lies outside src'
  }
  const other = roomOf(target)
  if (other === own || isTest) return undefined
  if (other === 'testing') return 'only tests use the testing kit'
  if (room.imports.includes('*') || (other !== undefined && room.imports.includes(other))) return undefined
  return `${own} may import ${['itself', ...room.imports].join(', ')}`
}

function outside(room: Room, { from, typeOnly }: Import, isTest: boolean): string | undefined {
  // Tests are free to use what is installed; the compiler checks that it is.
  if (isTest) return undefined
  const name = packageOf(from)
  if (room.types?.includes(name)) return typeOnly ? undefined : 'only its types may be used here'
  if (room.modules !== undefined) return room.modules.includes(name) ? undefined : 'not a module this folder may use'
  if (isBuiltin(from)) return from.startsWith('node:') ? undefined : `write node:${from}`
  return name in dependencies || name in peerDependencies ? undefined : 'not one of the dependencies in package.json'
}

/** `core`, `backends/memory`, or the name of a file that lies directly in src. */
function roomOf(path: string): string | undefined {
  const [, folder, child] = path.split('/')
  return folder === 'backends' ? `backends/${child}` : folder
}

function packageOf(specifier: string): string {
  const [first = '', second] = specifier.split('/')
  return first.startsWith('@') ? `${first}/${second}` : first
}
