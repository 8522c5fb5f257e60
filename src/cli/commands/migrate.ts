// `millrace migrate`: brings the schema of a PostgreSQL database up, back down, and tells where it stands.
import type { Command } from 'commander'
import type { Migrator } from '../../backends/postgres/migrate.ts'
import type { MigrationStatus } from '../../backends/postgres/migrate-status.ts'
import { CliError } from '../cli-error.ts'
import { destructive, runs, teach, wholeNumber } from '../command.ts'
import type { Cli, ConsentFlags } from '../command.ts'
import { askConsent, checkConsent } from '../consent.ts'
import { EXIT } from '../exit-codes.ts'
import { createLogLines } from '../log-lines.ts'
import type { Output } from '../output.ts'
import { outputOf } from '../session.ts'
import { readSettings } from '../settings.ts'
import type { GlobalFlags } from '../settings.ts'
import { counted, lines } from '../text.ts'

export function addMigrate(program: Command, cli: Cli): void {
  const migrate = program
    .command('migrate')
    .summary('bring the schema of a database up, down, or tell where it stands')
    .description(
      'Brings the schema of a PostgreSQL database to the version of this package, takes it back, and tells where it stands.',
    )
  teach(migrate, {
    examples: [
      ['migrate status', 'ends with 4 when something is to be done'],
      ['migrate up', 'safe with many processes at once'],
      ['migrate sql up > millrace.sql', 'for a tool of your own'],
      ['migrate down --to 0 --dry-run', 'what would be taken back'],
    ],
  })
  addUp(migrate, cli)
  addDown(migrate, cli)
  addStatus(migrate, cli)
  addSql(migrate, cli)
}

function addUp(migrate: Command, cli: Cli): void {
  const command = migrate
    .command('up')
    .summary('apply what is pending')
    .description('Applies what is pending. Other processes that migrate at the same time wait and find nothing to do.')
    .option('--to <version>', 'stop at this version', wholeNumber(1))
    .option('--dry-run', 'say what would be done, and do nothing')
  teach(command, {
    examples: [['migrate up --postgres postgres://owner@db/app', 'before a deployment']],
    exits: ['unmet', 'timedOut'],
  })
  runs<{ readonly to?: number; readonly dryRun?: boolean }>(cli, command, (flags) =>
    withMigrator(cli, flags, async (migrator, out) => {
      const { to, dryRun = false } = flags
      const before = await migrator.status()
      const pending = before.pending.filter(({ version }) => to === undefined || version <= to)
      if (dryRun) {
        const text = pending.length === 0 ? 'nothing to apply' : `would apply ${pending.map(titleOf).join(', ')}`
        out.show(
          { dryRun, from: before.version, to: pending.at(-1)?.version ?? before.version, steps: pending.map(titleOf) },
          () => lines(text),
        )
        return
      }
      const report = await migrator.up(to)
      out.show({ dryRun, ...report }, () => reportText(report))
    }),
  )
}

function addDown(migrate: Command, cli: Cli): void {
  const command = migrate
    .command('down')
    .summary('take the schema back to a version')
    .description(
      'Takes the schema back to a version, after asking. Version 0 removes everything, jobs and history included.',
    )
    .requiredOption('--to <version>', 'the version to go back to', wholeNumber(0))
  destructive(command)
  teach(command, { examples: [['migrate down --to 3', 'asks first']], exits: ['unmet', 'timedOut'] })
  runs<ConsentFlags & { readonly to: number }>(cli, command, (flags) => {
    checkConsent(cli.parts.io, flags, 'migrate down')
    return withMigrator(cli, flags, async (migrator, out) => {
      const { to, dryRun = false } = flags
      const { applied, version } = await migrator.status()
      const back = applied.filter((one) => one.version > to)
      const all = to === 0 ? ', with all jobs and their history' : ''
      const what = `take back ${counted(back.length, 'migration')}${all}`
      if (dryRun) {
        out.show({ dryRun, from: version, to, steps: back.map(titleOf).reverse() }, () => `would ${what}\n`)
        return
      }
      if (back.length > 0) await askConsent(cli.parts.io, flags, { what, samples: back.map(titleOf).reverse() })
      const report = await migrator.down(to)
      out.show({ dryRun, ...report }, () => reportText(report))
    })
  })
}

function addStatus(migrate: Command, cli: Cli): void {
  const command = migrate
    .command('status')
    .summary('tell where the schema stands')
    .description(
      'Tells the version of the database, what is pending, and where it differs from what this package wrote. Ends with 4 when it is behind or differs.',
    )
  teach(command, { examples: [['migrate status --json', 'in a deployment pipeline']], exits: ['unmet'] })
  runs(cli, command, (flags) =>
    withMigrator(cli, flags, async (migrator, out) => {
      const status = await migrator.status()
      const applied = status.applied.map(({ atMs, ...one }) => ({ ...one, at: new Date(atMs) }))
      const { version, latest, pending, functions, drift } = status
      const upToDate = pending.length === 0 && functions === 'current' && drift.length === 0
      out.show({ upToDate, version, latest, applied, pending, functions, drift }, () =>
        statusText(status, upToDate, out),
      )
      return upToDate ? EXIT.done : EXIT.unmet
    }),
  )
}

function addSql(migrate: Command, cli: Cli): void {
  const command = migrate
    .command('sql')
    .summary('print the statements')
    .argument('<direction>', 'up or down')
    .description('Prints the statements instead of running them. Needs no database.')
    .option('--from <version>', 'the version of the database; default 0 for up, the latest for down', wholeNumber(0))
    .option('--to <version>', 'the version to reach; default the latest for up, 0 for down', wholeNumber(0))
  teach(command, {
    examples: [
      ['migrate sql up > millrace.sql', 'everything'],
      ['migrate sql up --from 2', 'for a database of version 2'],
    ],
  })
  runs<{ readonly from?: number; readonly to?: number }>(cli, command, async (flags, [direction = '']) => {
    if (direction !== 'up' && direction !== 'down') {
      throw new CliError('USAGE', `there is no direction ${JSON.stringify(direction)}: write up or down`)
    }
    const out = outputOf(cli.parts, flags)
    // Never opened: the statements are part of the package.
    const schema = flags.schema ?? (cli.parts.io.env['MILLRACE_SCHEMA'] || undefined)
    const migrator = await cli.parts.openMigrator({ url: 'postgres://', ...(schema !== undefined && { schema }) })
    const sql = migrator.sql(direction, flags.to, flags.from)
    await migrator.close()
    out.show({ direction, sql }, () => (sql.endsWith('\n') ? sql : `${sql}\n`))
  })
}

async function withMigrator(
  cli: Cli,
  flags: GlobalFlags,
  act: (migrator: Migrator, out: Output) => Promise<number | void>,
): Promise<number> {
  const { io, clock, load } = cli.parts
  const { store } = await readSettings(io, flags, {}, load)
  const out = outputOf(cli.parts, flags)
  const logger = createLogLines(io, { json: out.json, level: 'info', clock })
  if (store.kind === 'backends' || store.kind === 'redis') {
    const message = `${store.shown} has no migrations; pass --postgres URL for those of a database`
    throw new CliError('USAGE', message)
  }
  const server = store.kind === 'embedded' ? await cli.parts.startEmbedded({ dir: store.dir, logger }) : null
  try {
    const { url, schema } = store.kind === 'postgres' ? store.server : { url: server?.url, schema: store.schema }
    const where = { ...(url !== undefined && { url }), ...(schema !== undefined && { schema }) }
    const migrator = await cli.parts.openMigrator({ ...where, logger })
    try {
      return (await act(migrator, out)) ?? EXIT.done
    } finally {
      await migrator.close()
    }
  } finally {
    await server?.stop()
  }
}

function titleOf({ version, name }: { readonly version: number; readonly name: string }): string {
  return `${version} ${name}`
}

function reportText({ from, to, steps }: Awaited<ReturnType<Migrator['up']>>): string {
  if (steps.length === 0) return `nothing to do: the schema is at version ${to}\n`
  return lines([...steps.map((step) => `  ${step}`), `the schema went from version ${from} to ${to}`].join('\n'))
}

function statusText(
  { version, latest, applied, pending, functions, drift }: MigrationStatus,
  upToDate: boolean,
  out: Output,
): string {
  const rows = [
    ...applied.map((one) => ({ ...one, state: 'applied' })),
    ...pending.map((one) => ({ ...one, atMs: null, state: 'pending' })),
  ]
  const table = out.table<(typeof rows)[number]>(
    [
      { title: 'VERSION', of: (row) => row.version, align: 'right' },
      { title: 'NAME', of: ({ name }) => name },
      { title: 'STATE', of: ({ state }) => state, style: ({ state }) => (state === 'pending' ? 'yellow' : 'green') },
      { title: 'AT', of: ({ atMs }) => out.time(atMs) },
    ],
    rows,
  )
  const says = [
    `the schema is at version ${version} of ${latest}${upToDate ? ', nothing is to be done' : ''}`,
    ...(pending.length > 0 || functions === 'outdated' ? ['behind: millrace migrate up'] : []),
    ...drift.map((sentence) => `differs: ${sentence}`),
  ]
  return `${table}\n${lines(says.join('\n'))}`
}
