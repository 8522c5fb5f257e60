// `millrace init`: a configuration file and a first job. Never writes over anything.
import { mkdir, writeFile } from 'node:fs/promises'
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Command } from 'commander'
import { runs, teach } from '../command.ts'
import type { Cli } from '../command.ts'
import { CONFIG_NAMES } from '../config-file.ts'
import { outputOf } from '../session.ts'

const HELLO = `import { defineJob } from 'millrace'
import type { RunContext } from 'millrace'

// The name is how a stored job finds its handler, so it should not change.
export const hello = defineJob({
  name: 'hello',
  async run({ input, log }: RunContext<{ name?: string } | undefined>) {
    const greeting = \`Hello, \${input?.name ?? 'world'}!\`
    log.info(greeting)
    return { greeting }
  },
})
`

const CONFIG = `import { defineConfig } from 'millrace'
import { hello } from './jobs/hello.ts'

export default defineConfig({
  jobs: [hello],
  // Where jobs are kept. Without a URL: a PostgreSQL of its own with its data in .millrace/, for development.
  postgres: process.env['DATABASE_URL'],
  work: { concurrency: 10 },
})
`

const NEXT = 'millrace dev'

export function addInit(program: Command, cli: Cli): void {
  const command = program
    .command('init')
    .summary('write a configuration file and a first job')
    .description(
      'Writes millrace.config.ts and jobs/hello.ts into this folder. What is there already is never written over.',
    )
  teach(command, {
    examples: [
      ['init', 'then: millrace dev'],
      ['jobs add hello \'{"name":"Ada"}\' --wait 10s', 'in another terminal, while dev runs'],
    ],
  })
  runs(cli, command, async (flags) => {
    const { io } = cli.parts
    const out = outputOf(cli.parts, flags)
    const other = CONFIG_NAMES.find((name) => existsSync(join(io.cwd, name)))
    const files = [
      { path: other ?? CONFIG_NAMES[0], text: CONFIG },
      { path: 'jobs/hello.ts', text: HELLO },
    ]
    const answers = await Promise.all(files.map(async (file) => ({ ...file, isNew: await writeNew(io.cwd, file) })))
    const written = answers.filter(({ isNew }) => isNew).map(({ path }) => path)
    const kept = answers.filter(({ isNew }) => !isNew).map(({ path }) => path)
    out.show({ written, kept, next: NEXT }, () => {
      const said = [...written.map((path) => `wrote ${path}`), ...kept.map((path) => `kept ${path}, which was there`)]
      return `${said.join('\n')}\nnext: npx ${NEXT}\n`
    })
  })
}

async function writeNew(
  cwd: string,
  { path, text }: { readonly path: string; readonly text: string },
): Promise<boolean> {
  const full = join(cwd, path)
  await mkdir(dirname(full), { recursive: true })
  try {
    await writeFile(full, text, { flag: 'wx' })
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}
