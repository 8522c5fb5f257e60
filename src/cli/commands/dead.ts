// `millrace dead`: the dead letters. List, look at, replay, remove and prune them.
import type { Command } from 'commander'
import { formatDuration } from '../../core/duration.ts'
import { DEFAULTS, LIMITS } from '../../core/limits.ts'
import { CliError } from '../cli-error.ts'
import { destructive, runs, teach } from '../command.ts'
import type { Cli, ConsentFlags } from '../command.ts'
import { askConsent, checkConsent } from '../consent.ts'
import { deadFilterOptions, toDeadFilter } from '../dead-filter-flags.ts'
import type { DeadFlags } from '../dead-filter-flags.ts'
import { pageOptions, pickJobs, toPage } from '../job-filter-flags.ts'
import type { PageFlags } from '../job-filter-flags.ts'
import { attemptColumns, deadColumns, jobFields, jobLine } from '../job-text.ts'
import { withMill } from '../session.ts'
import type { Session } from '../session.ts'
import { counted, lines } from '../text.ts'
import { addDeadRemove, addDeadReplay } from './dead-act.ts'

export function addDead(program: Command, cli: Cli): void {
  const dead = program
    .command('dead')
    .summary('list, look at, replay and remove dead letters')
    .description(
      'Dead letters are failed jobs with everything that is known of them. Lists, shows, replays and removes them.',
    )
  teach(dead, {
    examples: [
      ['dead ls --queue mail', 'what failed for good'],
      ['dead show 0197…', 'one with its payload, attempts and stack'],
      ['dead replay --error "connection refused" --dry-run', 'how many failed for this reason'],
      ['dead replay --error "connection refused"', 'run them again, after asking'],
    ],
  })
  addList(dead, cli)
  addShow(dead, cli)
  addDeadReplay(dead, cli)
  addDeadRemove(dead, cli)
  addPrune(dead, cli)
}

function addList(dead: Command, cli: Cli): void {
  const command = dead
    .command('ls')
    .summary('list dead letters')
    .description('Lists dead letters, newest first, a page at a time.')
  pageOptions(deadFilterOptions(command))
  teach(command, {
    examples: [
      ['dead ls', 'the newest 50'],
      ['dead ls --error timeout --since 1d', 'enqueued since yesterday and failed with this error'],
    ],
  })
  runs<DeadFlags & PageFlags>(cli, command, (flags) =>
    withMill(cli.parts, flags, async ({ mill, out }) => {
      const filter = toDeadFilter(flags, cli.parts.clock.nowMs())
      const { items, nextCursor } = await mill.deadLetters.list(filter, toPage(flags))
      const document = { jobs: items, ...(nextCursor !== undefined && { nextCursor }) }
      out.show(document, () => (items.length === 0 ? 'no dead letters\n' : out.table(deadColumns(out), items)))
      if (nextCursor !== undefined) out.note(`there are more: add --cursor ${nextCursor}`)
    }),
  )
}

function addShow(dead: Command, cli: Cli): void {
  const command = dead
    .command('show')
    .argument('<id>', 'of the job')
    .summary('show one with its attempts and stack')
    .description('Shows a dead letter with its payload, its attempts and the stack of its error.')
  teach(command, { examples: [['dead show 0197…', 'why did it fail']], exits: ['notFound'] })
  runs(cli, command, (flags, [id = '']) =>
    withMill(cli.parts, flags, async (session) => {
      const { mill, out } = session
      const letter = await mill.deadLetters.get(id)
      if (letter === null) throw await notDead(session, id)
      const { attempts, ...job } = letter
      out.show({ job, attempts }, () => {
        const stack = job.lastError?.stack
        const parts = [jobFields(job, out), out.table(attemptColumns(out), attempts)]
        return [...parts, ...(stack === undefined ? [] : [lines(stack)])].join('\n')
      })
    }),
  )
}

async function notDead({ mill }: Session, id: string): Promise<CliError> {
  const job = await mill.jobs.get(id)
  const message =
    job === null
      ? `there is no job ${id}: it was removed, or it lives on another connection`
      : `job ${id} is no dead letter: it is ${job.status}; look at it with millrace jobs get ${id}`
  return new CliError('NOT_FOUND', message)
}

function addPrune(dead: Command, cli: Cli): void {
  const usual = formatDuration(DEFAULTS.deadLetterPruneMs)
  const command = dead
    .command('prune')
    .summary('remove those that failed long ago')
    .description(`Removes dead letters that failed long ago, by default over ${usual}.`)
    .option('--older-than <time>', `failed at least this long ago; default ${usual}`)
    .option('-q, --queue <name>', 'of this queue only')
    .option('--connection <name>', 'on this connection only')
  destructive(command)
  teach(command, {
    examples: [
      ['dead prune --dry-run', 'how many would go'],
      ['dead prune --older-than 7d --queue mail --yes', 'in a script'],
    ],
  })
  type PruneFlags = ConsentFlags & Pick<DeadFlags, 'olderThan' | 'queue' | 'connection'>
  runs<PruneFlags>(cli, command, (flags) => {
    checkConsent(cli.parts.io, flags, 'dead prune')
    return withMill(cli.parts, flags, async ({ mill, out }) => {
      const { dryRun = false, olderThan = DEFAULTS.deadLetterPruneMs, queue, connection } = flags
      const which = {
        olderThan,
        ...(queue !== undefined && { queue }),
        ...(connection !== undefined && { connection }),
      }
      const picked = await pickJobs((page) => mill.deadLetters.list(which, page), LIMITS.bulkJobsMax)
      const matched = picked.jobs.length
      const count = `${picked.more ? 'over ' : ''}${counted(matched, 'dead letter')}`
      if (dryRun) {
        out.show({ dryRun, matched, more: picked.more, removed: 0 }, () => `would remove ${count}\n`)
        return
      }
      if (matched > 0)
        await askConsent(cli.parts.io, flags, { what: `remove ${count}`, samples: picked.jobs.map(jobLine) })
      const removed = matched === 0 ? 0 : await mill.deadLetters.prune(which)
      out.show({ dryRun, matched, more: picked.more, removed }, () => `${counted(removed, 'dead letter')} removed\n`)
    })
  })
}
