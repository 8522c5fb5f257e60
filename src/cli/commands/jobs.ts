// `millrace jobs`: list, look at, enqueue, cancel and remove jobs. Adding has a file of its own, and so have
// the two verbs that end jobs.
import type { Command } from 'commander'
import { jobNotFound } from '../../client/results.ts'
import { checkJobId } from '../../client/ids.ts'
import { runs, teach } from '../command.ts'
import type { Cli } from '../command.ts'
import { filterOptions, pageOptions, toFilter, toPage } from '../job-filter-flags.ts'
import type { FilterFlags, PageFlags } from '../job-filter-flags.ts'
import { attemptColumns, jobColumns, jobFields, logColumns } from '../job-text.ts'
import { withMill } from '../session.ts'
import { lines } from '../text.ts'
import { addJobAdd } from './job-add.ts'
import { addJobCancel, addJobRemove } from './job-end.ts'

export function addJobs(program: Command, cli: Cli): void {
  const jobs = program
    .command('jobs')
    .summary('list, look at, enqueue, cancel and remove jobs')
    .description('Lists, shows, enqueues, cancels and removes jobs.')
  teach(jobs, {
    examples: [
      ['jobs ls --status failed --since 1h', 'what failed in the last hour'],
      ['jobs get 0197…', 'one job with all its attempts'],
      ['jobs add send-welcome \'{"to":"ada@example.com"}\' --wait 10s', 'enqueue, and wait for the result'],
      ['jobs cancel --queue mail --status queued', 'counts them and asks first'],
    ],
  })
  addList(jobs, cli)
  addGet(jobs, cli)
  addJobAdd(jobs, cli)
  addJobCancel(jobs, cli)
  addJobRemove(jobs, cli)
}

function addList(jobs: Command, cli: Cli): void {
  const command = jobs.command('ls').summary('list jobs').description('Lists jobs, newest first, a page at a time.')
  pageOptions(filterOptions(command))
  teach(command, {
    examples: [
      ['jobs ls', 'the newest 50'],
      ['jobs ls --queue mail --status queued,running', 'what is to be done'],
      ['jobs ls --error "connection refused" --json', 'for a script'],
    ],
  })
  runs<FilterFlags & PageFlags>(cli, command, (flags) =>
    withMill(cli.parts, flags, async ({ mill, out }) => {
      const { items, nextCursor } = await mill.jobs.list(toFilter(flags, cli.parts.clock.nowMs()), toPage(flags))
      const document = { jobs: items, ...(nextCursor !== undefined && { nextCursor }) }
      out.show(document, () => (items.length === 0 ? 'no jobs\n' : out.table(jobColumns(out), items)))
      if (nextCursor !== undefined) out.note(`there are more: add --cursor ${nextCursor}`)
    }),
  )
}

function addGet(jobs: Command, cli: Cli): void {
  const command = jobs
    .command('get')
    .argument('<id>', 'of the job')
    .summary('show one job with its attempts')
    .description('Shows one job with its attempts, and with --logs what it wrote.')
    .option('--logs', 'show its log lines too')
    .option('--stack', 'show the stack of its last error too')
  teach(command, {
    examples: [
      ['jobs get 0197… --logs', 'with its log lines'],
      ['jobs get 0197… --json', 'for a script; logs are always in it'],
    ],
    exits: ['notFound'],
  })
  runs<{ readonly logs?: boolean; readonly stack?: boolean }>(cli, command, (flags, [id = '']) =>
    withMill(cli.parts, flags, async ({ mill, out }) => {
      const job = await mill.jobs.get(id)
      if (job === null) throw jobNotFound(checkJobId(id))
      const [attempts, logs] = await Promise.all([mill.jobs.attempts(job), mill.jobs.logs(job)])
      out.show({ job, attempts, logs }, () => {
        const parts = [jobFields(job, out)]
        if (attempts.length > 0) parts.push(out.table(attemptColumns(out), attempts))
        if (flags.logs) parts.push(logs.length === 0 ? 'no log lines\n' : out.table(logColumns(out), logs))
        if (flags.stack && job.lastError?.stack !== undefined) parts.push(lines(job.lastError.stack))
        return parts.join('\n')
      })
    }),
  )
}
