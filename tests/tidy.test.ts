// The style of the project as a test: what a reviewer would otherwise have to look for. Each message names
// the file and the line. The rules themselves are in tests/tidy/.
import { posix } from 'node:path'
import { describe, expect, test } from 'vitest'
import { GENERATED_DOCS } from '../scripts/render-docs.ts'
import { PLANTED_BUGS } from '../src/core/planted.ts'
import { BACKENDS, featuresOf, testTitles } from './tidy/features.ts'
import { importProblems } from './tidy/imports.ts'
import { outsideWorldProblems } from './tidy/outside-world.ts'
import { REPOSITORY_FILES, declarationsOf, exists, filesIn, lineAt, nameOf } from './tidy/source.ts'
import { parse, parseText, readText, rootName, textOf } from './tidy/source.ts'

const LINES_MAX = 400
const LINES_MEDIAN_MAX = 120
const STOPS_MIN = 10

const sources = filesIn('src', '.ts')
const code = sources.filter((path) => !path.endsWith('.test.ts'))
const testFiles = [...filesIn('tests', '.ts'), ...filesIn('src', '.test.ts')]
const documents = REPOSITORY_FILES.filter((path) => path.endsWith('.md'))

describe('source', () => {
  test('imports go one way', () => {
    expect(sources.flatMap((path) => importProblems(parse(path)))).toEqual([])
  })

  test(`no file is longer than ${LINES_MAX} lines`, () => {
    const long = code.map((path) => ({ path, lines: countLines(path) })).filter(({ lines }) => lines > LINES_MAX)
    expect(long.map(({ path, lines }) => `${path}:${LINES_MAX + 1} goes on to line ${lines}: split it`)).toEqual([])
  })

  test(`the median file has at most ${LINES_MEDIAN_MAX} lines`, () => {
    const counts = code.map(countLines).sort((a, b) => a - b)
    expect(counts[Math.floor((counts.length - 1) / 2)]).toBeLessThanOrEqual(LINES_MEDIAN_MAX)
  })

  test('time, timers, randomness and ids come from src/runtime alone', () => {
    const outside = code.filter((path) => !path.startsWith('src/runtime/'))
    expect(outside.flatMap((path) => outsideWorldProblems(parse(path)))).toEqual([])
  })

  test('every file opens with a comment on its role', () => {
    const silent = code.filter((path) => !/^(#!.*\n)?\s*\/[/*]/.test(readText(path)))
    expect(silent.map((path) => `${path}:1 opens without a comment`)).toEqual([])
  })

  test('every planted bug has a place where it breaks something', () => {
    const calls = code.flatMap((path) => parse(path).nodes.filter(({ callee }) => nameOf(callee) === 'isPlanted'))
    const used = new Set(
      calls.map((call) => (Array.isArray(call['arguments']) ? textOf(call['arguments'][0]) : undefined)),
    )
    const list = parse('src/core/planted.ts')
    const unused = list.nodes.filter((node) => PLANTED_BUGS.some((bug) => bug === textOf(node) && !used.has(bug)))
    expect(unused.map((node) => `${list.at(node)} '${textOf(node)}' is asked for by no isPlanted() in src`)).toEqual([])
  })
})

/** Each of their test files has a process of its own: vitest.config.ts. */
const OWN_PROCESS = ['tests/chaos/', 'tests/embedded/']

describe('tests', () => {
  test('hooks are set by a test file: what it imports is loaded once for many', () => {
    const helpers = testFiles.filter(
      (path) => !path.endsWith('.test.ts') && !OWN_PROCESS.some((dir) => path.startsWith(dir)),
    )
    const hooks = /^(const .* = use[A-Z]\w*\(|use[A-Z]\w*\(|(before|after)(All|Each)\(|vi\.)/gm
    const early = helpers.flatMap((path) =>
      [...readText(path).matchAll(hooks)].map(({ index }) => `${path}:${lineAt(readText(path), index)}`),
    )
    expect(early.map((place) => `${place} runs for the first file only: put it into a function`)).toEqual([])
  })

  test.each(BACKENDS)('every feature that $name promises has a test with its id', ({ name, tests }) => {
    const own = testFiles.filter((path) => tests.some((start) => path.startsWith(start)))
    const titles = own.flatMap((path) => testTitles(parse(path)))
    const untested = featuresOf(name).filter((id) => !titles.some((title) => title.startsWith(`${id} `)))
    expect(untested.map((id) => `tests/tidy/features.ts: no test('${id} …') runs for ${name}`)).toEqual([])
  })

  test('no test is skipped, singled out or left to be written', () => {
    const marks = new Set(['skip', 'only', 'todo'])
    const runners = new Set(['test', 'it', 'describe', 'suite', 'bench'])
    const marked = testFiles.map(parse).flatMap((source) =>
      source.nodes
        .filter(({ type, property }) => type === 'MemberExpression' && marks.has(nameOf(property) ?? ''))
        .filter((node) => runners.has(rootName(node) ?? ''))
        // The one place that may skip: it takes a reason per test, and refuses a skip without one.
        .filter(({ property }) => source.path !== 'tests/conformance/suite.ts' || nameOf(property) !== 'skip')
        .map((node) => `${source.at(node)} uses .${nameOf(node['property'])}`),
    )
    expect(marked).toEqual([])
  })
})

describe('documents', () => {
  test.each(GENERATED_DOCS)('$path is what `npm run generate` writes', ({ path, render }) => {
    expect(exists(path) ? readText(path) : `${path} is missing`).toBe(render())
  })

  test(`ARCHITECTURE.md stops at ${STOPS_MIN} places or more, and each exists`, () => {
    const text = readText('ARCHITECTURE.md')
    const stops = [...text.matchAll(/`(src\/[\w./-]+\.ts)#([\w$]+)`/g)]
    const broken = stops.flatMap(([, path = '', symbol = ''], index) => {
      const at = `ARCHITECTURE.md:${lineAt(text, stops[index]?.index ?? 0)}`
      if (!exists(path)) return [`${at} names ${path}, which does not exist`]
      return declarationsOf(parse(path)).has(symbol) ? [] : [`${at} names ${symbol}, which ${path} does not declare`]
    })
    expect(broken).toEqual([])
    expect(stops.length).toBeGreaterThanOrEqual(STOPS_MIN)
  })

  test('every relative link leads to a file', () => {
    expect(documents.flatMap((path) => brokenLinks(path, readText(path)))).toEqual([])
  })
})

describe('repository', () => {
  test('the lock file names no package host', () => {
    const lines = readText('package-lock.json').split('\n')
    const named = lines.flatMap((line, index) => (/"resolved": "https?:/.test(line) ? [index + 1] : []))
    expect(named.map((line) => `package-lock.json:${line} has a resolved address`)).toEqual([])
  })

  test('no file names a place of one machine', () => {
    expect(findInRepository(/(?<![\w.~*-])\/(?:root|home|work|Users)\//g)).toEqual([])
  })

  test('the project speaks of itself alone', () => {
    // In two pieces each, so that this list does not find itself.
    const words = ['chat·gpt', 'clau·de', 'anthro·pic', 'open·ai', 'co·pilot', 'ai-gene·rated', 'language mo·del']
    const hosts = ['registry.npm·js', 'registry.yarn·pkg']
    const pattern = [...words, ...hosts].map((word) => word.replace('·', '').replace('.', '\\.')).join('|')
    expect(findInRepository(new RegExp(`\\b(?:${pattern})`, 'gi'))).toEqual([])
  })
})

describe('the rules of this test', () => {
  test('doors to the outside are found in code, not in comments and strings', () => {
    const harmless = "// Date.now()\nexport const a = 'Math.random()' + `setTimeout`\nexport const b = new Date(0)\n"
    expect(outsideWorldProblems(parseText('src/worker/a.ts', harmless))).toEqual([])
    const harmful = [
      'Date.now()',
      'new Date()',
      'globalThis.Math.random',
      'process.hrtime.bigint()',
      'setTimeout(() => 1, 1)',
      'AbortSignal.timeout(1)',
      'crypto.randomUUID()',
      'performance.now()',
      "import('node:timers')",
    ]
    for (const [index, text] of harmful.entries()) {
      const found = outsideWorldProblems(parseText('src/worker/a.ts', `// one\nexport const a${index} = ${text}\n`))
      expect(found, text).toHaveLength(1)
      expect(found[0]).toMatch(/^src\/worker\/a\.ts:2 /)
    }
  })

  test.each([
    ['src/core/a.ts', "import { x } from '../store/ports.ts'"],
    ['src/core/a.ts', "import { readFile } from 'node:fs'"],
    ['src/core/a.ts', "import { StandardSchemaV1 } from '@standard-schema/spec'"],
    ['src/store/a.ts', "import type { x } from '../runtime/clock.ts'"],
    ['src/backends/memory/a.ts', "export * from '../postgres/jobs.ts'"],
    ['src/client/a.ts', "import { x } from '../worker/worker.ts'"],
    ['src/index.ts', "export * from './testing/index.ts'"],
    ['src/worker/a.ts', "export const x = import('../../tests/conformance/suite.ts')"],
    ['src/worker/a.ts', "import { z } from 'zod'"],
    ['src/cellar/a.ts', "import { x } from '../core/job.ts'"],
  ])('%s may not say: %s', (path, text) => {
    expect(importProblems(parseText(path, text))).toHaveLength(1)
  })
})

function countLines(path: string): number {
  return readText(path).trimEnd().split('\n').length
}

function brokenLinks(path: string, text: string): readonly string[] {
  // Blank out code, line by line, so that the numbers stay right.
  const prose = text.replace(/^```[^]*?^```|`[^`\n]*`/gm, (block) => block.replace(/[^\n]/g, ' '))
  const links = prose.matchAll(/\]\(<?([^)\s>]+)|^\[[^\]]+\]:\s+<?([^\s>]+)|\b(?:src|href)="([^"]+)"/gm)
  return [...links].flatMap((link) => {
    const target = (link[1] ?? link[2] ?? link[3] ?? '').replace(/[?#].*$/, '')
    if (target === '' || /^[a-z]+:/i.test(target)) return []
    const file = target.startsWith('/') ? target.slice(1) : posix.join(posix.dirname(path), decodeURI(target))
    return exists(file) ? [] : [`${path}:${lineAt(text, link.index)} links to ${target}, which does not exist`]
  })
}

function findInRepository(pattern: RegExp): readonly string[] {
  return REPOSITORY_FILES.filter((path) => path !== 'package-lock.json').flatMap((path) => {
    const text = readText(path)
    if (text.includes('\0')) return []
    return [...text.matchAll(pattern)].map((match) => `${path}:${lineAt(text, match.index)} says ${match[0]}`)
  })
}
