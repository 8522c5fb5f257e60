// `millrace batches`: look at batches and cancel them.
import type { Command } from 'commander'
import type { BatchInfo } from '../../client/batches.ts'
import { CliError } from '../cli-error.ts'
import { destructive, runs, teach } from '../command.ts'
import type { Cli, ConsentFlags } from '../command.ts'
import { askConsent, checkConsent } from '../consent.ts'
import { pageOptions, toPage } from '../job-filter-flags.ts'
import type { PageFlags } from '../job-filter-flags.ts'
import type { Output } from '../output.ts'
import { withMill } from '../session.ts'
import type { Session } from '../session.ts'
import { counted, inline } from '../text.ts'

export function addBatches(program: Command, cli: Cli): void {
  const batches = program
    .command('batches')
    .summary('look at batches and cancel them')
    .description('Looks at batches, jobs that are followed together, and cancels them.')
  teach(batches, {
    examples: [
      ['batches ls', 'the newest with their progress'],
      ['batches show 0197…', 'one of them'],
      ['batches cancel 0197…', 'its jobs that are not finished'],
    ],
  })
  addList(batches, cli)
  addShow(batches, cli)
  addCancel(batches, cli)
}

function addList(batches: Command, cli: Cli): void {
  const command = batches
    .command('ls')
    .summary('list batches')
    .description('Lists batches, newest first, a page at a time.')
    .option('--connection <name>', 'on this connection')
  pageOptions(command)
  teach(command, { examples: [['batches ls --limit 10', 'the newest ten']] })
  runs<PageFlags & { readonly connection?: string }>(cli, command, (flags) =>
    withMill(cli.parts, flags, async ({ mill, out }) => {
      const { connection } = flags
      const page = { ...toPage(flags), ...(connection !== undefined && { connection }) }
      const { items, nextCursor } = await mill.batches.list(page)
      const document = { batches: items, ...(nextCursor !== undefined && { nextCursor }) }
      out.show(document, () => (items.length === 0 ? 'no batches\n' : batchTable(items, out)))
      if (nextCursor !== undefined) out.note(`there are more: add --cursor ${nextCursor}`)
    }),
  )
}

function addShow(batches: Command, cli: Cli): void {
  const command = batches
    .command('show')
    .summary('show one with its progress')
    .argument('<id>', 'of the batch')
    .description('Shows a batch with its progress.')
  teach(command, { examples: [['batches show 0197…', 'how far it is']], exits: ['notFound'] })
  runs(cli, command, (flags, [id = '']) =>
    withMill(cli.parts, flags, async (session) => {
      const { out } = session
      const batch = await known(session, id)
      out.show({ batch }, () => batchFields(batch, out))
    }),
  )
}

function addCancel(batches: Command, cli: Cli): void {
  const command = batches
    .command('cancel')
    .summary('cancel what is not finished')
    .argument('<id>', 'of the batch')
    .description('Cancels a batch, after asking: it takes no more jobs, and those that are not finished are cancelled.')
  destructive(command)
  teach(command, { examples: [['batches cancel 0197… --yes', 'in a script']], exits: ['notFound'] })
  runs<ConsentFlags>(cli, command, (flags, [id = '']) => {
    checkConsent(cli.parts.io, flags, 'batches cancel')
    return withMill(cli.parts, flags, async (session) => {
      const batch = await known(session, id)
      const dryRun = flags.dryRun ?? false
      const what = `cancel batch ${batch.name} with ${counted(batch.progress.pending, 'unfinished job')}`
      if (!dryRun) await askConsent(cli.parts.io, flags, { what })
      const reached = dryRun ? 0 : await session.mill.batches.cancel(id)
      session.out.show({ dryRun, batch: batch.id, pending: batch.progress.pending, reached }, () => {
        return dryRun ? `would ${what}\n` : `batch ${batch.name} is cancelled, ${counted(reached, 'job')} reached\n`
      })
    })
  })
}

async function known({ mill }: Session, id: string): Promise<BatchInfo> {
  const batch = await mill.batches.get(id)
  if (batch !== null) return batch
  throw new CliError('NOT_FOUND', `there is no batch ${id}: it was removed with its last job, or the id is wrong`)
}

function batchTable(batches: readonly BatchInfo[], out: Output): string {
  const count = (title: string, of: (batch: BatchInfo) => number) => ({ title, of, align: 'right' }) as const
  return out.table<BatchInfo>(
    [
      { title: 'ID', of: ({ id }) => id },
      { title: 'NAME', of: ({ name }) => name, flex: true },
      { title: 'STATE', of: stateOf },
      count('TOTAL', ({ progress }) => progress.total),
      count('PENDING', ({ progress }) => progress.pending),
      count('COMPLETED', ({ progress }) => progress.completed),
      {
        ...count('FAILED', ({ progress }) => progress.failed),
        style: ({ progress }) => (progress.failed > 0 ? 'red' : 'dim'),
      },
      { title: 'CREATED', of: ({ createdAt }) => out.time(createdAt) },
    ],
    batches,
  )
}

function batchFields(batch: BatchInfo, out: Output): string {
  const { total, pending, completed, failed, cancelled, percent, successRate } = batch.progress
  return out.fields([
    ['id', batch.id],
    ['name', batch.name],
    ['state', stateOf(batch)],
    ['jobs', `${total}: ${pending} pending, ${completed} completed, ${failed} failed, ${cancelled} cancelled`],
    [
      'progress',
      `${percent.toFixed(1)} % completed, ${(successRate * 100).toFixed(1)} % of those that ended succeeded`,
    ],
    ['created', out.time(batch.createdAt)],
    ['finished', out.time(batch.finishedAt)],
    ['connection', batch.connection],
    ['meta', inline(batch.meta)],
  ])
}

function stateOf({ cancelled, finishedAt, sealed }: BatchInfo): string {
  if (cancelled) return finishedAt === null ? 'cancelling' : 'cancelled'
  if (finishedAt !== null) return 'finished'
  return sealed ? 'running' : 'open'
}
