// Which promises must have a test, on which backend. A test belongs to a feature when its title starts
// with the id: `test('D1 a stale worker cannot complete a job that was claimed again', …)`.
import { isNode, nameOf, rootName, textOf } from './source.ts'
import type { Source } from './source.ts'

/** Suites that are a function of a backend and so run for every one. */
const EVERY_BACKEND = ['tests/conformance/', 'tests/model/']

/** Where the tests of a backend live, by the beginning of the path. */
export const BACKENDS: readonly { readonly name: string; readonly tests: readonly string[] }[] = [
  {
    name: 'memory',
    tests: [
      ...EVERY_BACKEND,
      'tests/features/',
      'tests/client/',
      'tests/integration/',
      'tests/testing-kit/',
      'tests/alerts/',
      'src/',
    ],
  },
  {
    name: 'postgres',
    tests: [
      ...EVERY_BACKEND,
      'tests/stores/',
      'tests/postgres/',
      'tests/transactions/',
      'tests/supervisor/',
      'tests/alerts/',
    ],
  },
  { name: 'redis', tests: [...EVERY_BACKEND, 'tests/stores/', 'tests/redis/', 'tests/supervisor/'] },
  { name: 'hybrid', tests: [...EVERY_BACKEND, 'tests/stores/', 'tests/hybrid/', 'tests/chaos/', 'tests/supervisor/'] },
]

/** The features, and the backends that promise them; absent: all. */
const FEATURES: readonly { readonly ids: string; readonly backends?: readonly string[] }[] = [
  { ids: 'J1 J2 J3 J4 J7 J8 J9 J10 J12 J13 J14' },
  { ids: 'D1 D2 D3 D5 D6 D7 D8 D9 D10 D12 D13' },
  { ids: 'T1 T2 T3 T4 T5 T6' },
  { ids: 'D4', backends: ['postgres', 'redis', 'hybrid'] },
  { ids: 'J6 J11 D11 P5', backends: ['postgres'] },
  { ids: 'J5', backends: ['redis', 'hybrid'] },
  { ids: 'H1 H2 H3 H4 H5 H6', backends: ['hybrid'] },
  { ids: 'O7', backends: ['memory'] },
  { ids: 'P1 P2 P3 P4', backends: ['postgres', 'redis', 'hybrid'] },
  { ids: 'O1 O3' },
  { ids: 'O2', backends: ['memory', 'postgres'] },
]

export function featuresOf(backend: string): readonly string[] {
  const promised = FEATURES.filter(({ backends }) => backends === undefined || backends.includes(backend))
  return promised.flatMap(({ ids }) => ids.split(' '))
}

/** The titles of the tests in a file, as far as they are fixed text. */
export function testTitles({ nodes }: Source): readonly string[] {
  return nodes.flatMap((node) => {
    const { type, callee, arguments: values } = node
    if (type !== 'CallExpression' || !isNode(callee) || !Array.isArray(values)) return []
    // `test('…')`, `test.each(rows)('…')`, and `area.test('…')` of the conformance suite.
    const runner = callee.type === 'MemberExpression' ? nameOf(callee['property']) : undefined
    const isTest = [rootName(callee), runner].some((name) => name === 'test' || name === 'it')
    return (isTest ? textOf(values[0]) : undefined) ?? []
  })
}
