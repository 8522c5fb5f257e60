// The TypeScript in the documents compiles, and what is marked `ts run` runs. A block marked `ts more` goes
// on where the one before it ended. Blocks keep the line numbers of their document, so an error leads to it.
import { spawn } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { binPath } from '../scripts/run-stage.ts'
import { REPOSITORY_FILES, ROOT, exists, readText } from './tidy/source.ts'

interface Sample {
  /** `README.md:12` of its first block. */
  readonly at: string
  readonly file: string
  readonly text: string
  readonly runs: boolean
}

const RUN_MAX_MS = 30_000
const COMPILE_MAX_MS = 120_000

/** Ignored by git, and inside the repository so that installed packages are found. */
const folder = join(ROOT, '.millrace', `docs-${process.pid}`)
/** Its blocks are pieces of whole test files, which its own test compares word for word and runs. */
const CHECKED_BY: Readonly<Record<string, string>> = { 'docs/testing.md': 'tests/testing-kit/docs.test.ts' }
const documents = REPOSITORY_FILES.filter(
  (path) => path === 'README.md' || (/^docs\/[^/]+\.md$/.test(path) && !Object.hasOwn(CHECKED_BY, path)),
)
const samples = documents.flatMap((path) => samplesOf(path, readText(path)))

beforeAll(() => {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'tsconfig.json'), tsconfig())
  for (const { file, text } of samples) writeFileSync(join(folder, file), text)
})

afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('samples in documents', () => {
  test('there are some in the README and in the guides', () => {
    const withSamples = new Set(samples.map(({ at }) => at.replace(/:\d+$/, '')))
    expect([...withSamples]).toEqual(
      expect.arrayContaining(['README.md', 'docs/getting-started.md', 'docs/jobs.md', 'docs/reliability-model.md']),
    )
  })

  test('what is not checked here is checked elsewhere', () => {
    expect(Object.values(CHECKED_BY).filter((path) => !exists(path))).toEqual([])
  })

  test('all of them compile', { timeout: COMPILE_MAX_MS + 5_000 }, async () => {
    const { output, code } = await node(
      [binPath('typescript'), '-p', folder, '--pretty', 'false'],
      ROOT,
      COMPILE_MAX_MS,
    )
    expect(inDocuments(output)).toBe('')
    expect(code).toBe(0)
  })

  test.each(samples.filter(({ runs }) => runs))('$at runs', { timeout: RUN_MAX_MS + 5_000 }, async ({ file }) => {
    // tsx finds the tsconfig.json of its working directory, and in it where `millrace` is.
    const { output, code } = await node(['--import', 'tsx', file], folder, RUN_MAX_MS)
    expect(code, output).toBe(0)
  })
})

describe('docs/delivery-contract.md', () => {
  const text = readText('docs/delivery-contract.md')
  // `tests/a.test.ts` *a part of a title*, *of another* on each
  const cited = [...text.matchAll(/`(tests\/[\w./-]+)`((?:,? \*[^*]+\*)*)( on each)?/g)]

  test('every test that it names is there, by its file and its title', () => {
    const missing = cited.flatMap(([, path = '', names = '']) => {
      const titles = REPOSITORY_FILES.filter((file) => file === path || file.startsWith(`${path}/`)).map(readText)
      if (titles.length === 0) return [`${path} does not exist`]
      const parts = [...names.matchAll(/\*([^*]+)\*/g)].map(([, part = '']) => part)
      if (parts.length === 0) return [`${path}: no title is named`]
      return parts.filter((part) => !titles.some((own) => titleWith(part).test(own))).map((part) => `${path}: ${part}`)
    })
    expect(missing).toEqual([])
    expect(cited.length).toBeGreaterThan(30)
  })

  test('a suite that is said to run on each store does', () => {
    const stores = ['tests/redis/features/', 'tests/postgres/features/', 'tests/hybrid/features/']
    const suites = cited.filter(([, , , each]) => each !== undefined).map(([, path = '']) => path)
    const absent = suites.flatMap((path) =>
      stores
        .filter(
          (folder) =>
            !REPOSITORY_FILES.some(
              (file) => file.startsWith(folder) && readText(file).includes(`../${path.slice('tests/'.length)}'`),
            ),
        )
        .map((folder) => `${path} is not used in ${folder}`),
    )
    expect(suites.length).toBeGreaterThan(0)
    expect(absent).toEqual([])
  })
})

/** In the title of a test, or in the name of a scenario. */
function titleWith(part: string): RegExp {
  const escaped = part.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')
  return new RegExp(`^\\s*(?:(?:test|it)(?:\\.each\\([^\\n]*?\\))?\\(\\s*|name: )?'[^'\\n]*${escaped}`, 'm')
}

describe('the extraction', () => {
  const fence = '```'

  test('keeps line numbers, joins what belongs together, and knows what runs', () => {
    const text = `one\n${fence}ts\nconst a = 1\n${fence}\n${fence}sh\nls\n${fence}\n${fence}ts more run\na\n${fence}\n${fence}ts\nb\n${fence}\n`
    expect(samplesOf('docs/a.md', text)).toEqual([
      { at: 'docs/a.md:2', file: 'docs_a.md.2.ts', text: '\n\nconst a = 1\n\n\n\n\n\na\nexport {}\n', runs: true },
      { at: 'docs/a.md:11', file: 'docs_a.md.11.ts', text: `${'\n'.repeat(11)}b\nexport {}\n`, runs: false },
    ])
  })

  test('refuses a block that never ends and a mark it does not know', () => {
    expect(() => samplesOf('a.md', `${fence}ts\nconst a = 1\n`)).toThrow('a.md:1')
    expect(() => samplesOf('a.md', `${fence}ts ruin\n${fence}\n`)).toThrow("a.md:1 has the mark 'ruin'")
    expect(() => samplesOf('a.md', `${fence}ts more\n${fence}\n`)).toThrow('a.md:1 goes on where nothing began')
  })
})

function samplesOf(path: string, text: string): readonly Sample[] {
  const lines = text.split('\n')
  const found: { readonly startLine: number; readonly kept: Map<number, string>; runs: boolean }[] = []
  for (let index = 0; index < lines.length; index += 1) {
    const opening = /^```ts(?: (.*))?$/.exec(lines[index] ?? '')
    if (opening === null) continue
    const at = `${path}:${index + 1}`
    const marks = (opening[1] ?? '').split(' ').filter((mark) => mark !== '')
    const unknown = marks.find((mark) => mark !== 'run' && mark !== 'more')
    if (unknown !== undefined) throw new Error(`${at} has the mark '${unknown}'; there are run and more`)
    const end = lines.indexOf('```', index + 1)
    if (end === -1) throw new Error(`${at} opens a block that is never closed`)
    if (!marks.includes('more')) found.push({ startLine: index + 1, kept: new Map(), runs: false })
    const sample = found.at(-1)
    if (sample === undefined) throw new Error(`${at} goes on where nothing began`)
    for (let line = index + 1; line < end; line += 1) sample.kept.set(line, lines[line] ?? '')
    sample.runs ||= marks.includes('run')
    index = end
  }
  return found.map(({ startLine, kept, runs }) => {
    const lastLine = Math.max(startLine, ...kept.keys())
    const code = Array.from({ length: lastLine + 1 }, (_, line) => kept.get(line) ?? '').join('\n')
    const file = `${path.replaceAll('/', '_')}.${startLine}.ts`
    // A file without imports would share its names with all the others.
    return { at: `${path}:${startLine}`, file, text: `${code}\nexport {}\n`, runs }
  })
}

function tsconfig(): string {
  const up = relative(folder, ROOT).replaceAll('\\', '/')
  return JSON.stringify({
    extends: `${up}/tsconfig.json`,
    compilerOptions: {
      // Samples show; they need not use everything they show.
      noUnusedLocals: false,
      noUnusedParameters: false,
      paths: {
        millrace: [`${up}/src/index.ts`],
        'millrace/testing': [`${up}/src/testing/index.ts`],
        'millrace/backend': [`${up}/src/store/index.ts`],
      },
    },
    include: ['*.ts'],
  })
}

/** `docs_jobs.md.12.ts(15,3): …` is line 15 of docs/jobs.md. */
function inDocuments(output: string): string {
  return output.trim().replaceAll(/^\S*?([^/\s]+\.md)\.\d+\.ts\((\d+),\d+\)/gm, (_, path: string, line: string) => {
    return `${path.replace('docs_', 'docs/')}:${line}`
  })
}

function node(args: readonly string[], cwd: string, limitMs: number) {
  return new Promise<{ code: number | null; output: string }>((resolve, reject) => {
    const child = spawn(process.execPath, args, { cwd })
    const tooLong = setTimeout(() => child.kill('SIGKILL'), limitMs)
    let output = ''
    const read = (chunk: Buffer): void => void (output += chunk.toString())
    child.stdout.on('data', read)
    child.stderr.on('data', read)
    child.once('error', reject)
    child.once('close', (code) => {
      clearTimeout(tooLong)
      resolve({ code, output })
    })
  })
}
