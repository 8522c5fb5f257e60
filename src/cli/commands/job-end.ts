// `millrace jobs cancel` and `millrace jobs rm`: end jobs by id, or all that a filter finds after asking.
import type { Command } from 'commander'
import { jobNotFound } from '../../client/results.ts'
import { checkJobId } from '../../client/ids.ts'
import type { JobListFilter } from '../../client/job-filter.ts'
import { FINAL_STATUSES, JOB_STATUSES } from '../../core/job.ts'
import type { JobId, JobStatus } from '../../core/job.ts'
import { LIMITS } from '../../core/limits.ts'
import { bulkOptions, checkChoice, forEachJob, howMany, tally } from '../bulk.ts'
import type { BulkFlags } from '../bulk.ts'
import { destructive, runs, teach } from '../command.ts'
import type { Cli } from '../command.ts'
import { askConsent, checkConsent } from '../consent.ts'
import { filterOptions, pickJobs, toFilter } from '../job-filter-flags.ts'
import type { FilterFlags, Picked } from '../job-filter-flags.ts'
import { jobLine } from '../job-text.ts'
import { withMill } from '../session.ts'
import type { Session } from '../session.ts'
import type { GlobalFlags } from '../settings.ts'
import { counted } from '../text.ts'

type EndFlags = GlobalFlags & FilterFlags & BulkFlags & { readonly reason?: string; readonly actor?: string }

interface EndVerb {
  readonly verb: 'cancel' | 'remove'
  readonly command: 'cancel' | 'rm'
  /** What a filter finds when it names no status. */
  readonly statuses: readonly JobStatus[]
  readonly act: (session: Session, jobs: readonly Target[], flags: EndFlags) => Promise<readonly string[]>
}

interface Target {
  readonly id: JobId
  readonly connection: string
}

const LIVE = JOB_STATUSES.filter((status) => !(FINAL_STATUSES as readonly JobStatus[]).includes(status))

export function addJobCancel(jobs: Command, cli: Cli): void {
  const command = jobs
    .command('cancel')
    .argument('[ids...]', 'of the jobs')
    .summary('cancel jobs by id or filter')
    .description(
      'Cancels jobs: one that waits never starts, one that runs is told to abort. By id at once, by filter after a count and a question.',
    )
    .option('--reason <text>', 'kept with the job')
    .option('--actor <name>', 'who asked; kept in the audit trail')
  bulkOptions(destructive(filterOptions(command)))
  teach(command, {
    examples: [
      ['jobs cancel 0197…', 'one job'],
      ['jobs cancel --queue mail --tag campaign-7 --dry-run', 'how many would it be'],
      ['jobs cancel --queue mail --tag campaign-7 --yes', 'in a script'],
    ],
    exits: ['notFound'],
  })
  runs<EndFlags>(cli, command, (flags, ids) =>
    end(cli, flags, ids, {
      verb: 'cancel',
      command: 'cancel',
      statuses: LIVE,
      act: ({ mill }, targets, { reason, actor }) =>
        mill.jobs.cancel(targets, { ...(reason !== undefined && { reason }), ...(actor !== undefined && { actor }) }),
    }),
  )
}

export function addJobRemove(jobs: Command, cli: Cli): void {
  const command = jobs
    .command('rm')
    .argument('[ids...]', 'of the jobs')
    .summary('remove jobs by id or filter')
    .description(
      'Removes jobs with their attempts and logs, in any state; one that runs is aborted first. By id at once, by filter after a count and a question.',
    )
    .option('--actor <name>', 'who asked; kept in the audit trail')
  bulkOptions(destructive(filterOptions(command)))
  teach(command, {
    examples: [
      ['jobs rm 0197…', 'one job'],
      ['jobs rm --queue mail --status cancelled --dry-run', 'how many would it be'],
    ],
    exits: ['notFound'],
  })
  runs<EndFlags>(cli, command, (flags, ids) =>
    end(cli, flags, ids, {
      verb: 'remove',
      command: 'rm',
      statuses: JOB_STATUSES,
      act: ({ mill }, targets, { actor }) =>
        forEachJob(targets, (target) => mill.jobs.remove(target, actor === undefined ? {} : { actor })),
    }),
  )
}

async function end(cli: Cli, flags: EndFlags, ids: readonly string[], verb: EndVerb): Promise<number> {
  const { io, clock } = cli.parts
  const filter = toFilter(flags, clock.nowMs())
  checkChoice(ids, filter, flags, verb.verb)
  const byFilter = ids.length === 0
  if (byFilter) checkConsent(io, flags, `jobs ${verb.command}`)
  return withMill(cli.parts, flags, async (session) => {
    const { out } = session
    const picked = byFilter ? await pick(session, filter, flags, verb) : await named(session, ids)
    const dryRun = flags.dryRun ?? false
    const document = (jobs: readonly { readonly id: JobId; readonly answer: string | null }[]) => ({
      dryRun,
      matched: picked.jobs.length,
      more: picked.more,
      jobs,
    })
    if (dryRun) {
      const jobs = picked.jobs.map(({ id }) => ({ id, answer: null }))
      out.show(document(jobs), () => `would ${verb.verb} ${howMany(picked)}\n`)
      return
    }
    if (byFilter && picked.jobs.length > 0) {
      await askConsent(io, flags, { what: `${verb.verb} ${howMany(picked)}`, samples: picked.jobs.map(jobLine) })
    }
    const answers = await verb.act(session, picked.jobs, flags)
    const jobs = picked.jobs.map(({ id }, index) => ({ id, answer: answers[index] ?? null }))
    out.show(document(jobs), () => `${counted(jobs.length, 'job')}${jobs.length === 0 ? '' : `: ${tally(answers)}`}\n`)
  })
}

function pick({ mill }: Session, filter: JobListFilter, flags: EndFlags, { statuses }: EndVerb): Promise<Picked> {
  const full = { ...filter, status: filter.status ?? statuses }
  return pickJobs((page) => mill.jobs.list(full, page), flags.limit ?? LIMITS.bulkJobsMax)
}

/** All ids are looked up before the first is touched: a typo in one of them changes nothing. */
async function named({ mill }: Session, ids: readonly string[]): Promise<Picked> {
  const jobs = await Promise.all(
    ids.map(async (id) => {
      const job = await mill.jobs.get(id)
      if (job === null) throw jobNotFound(checkJobId(id))
      return job
    }),
  )
  return { jobs, more: false }
}
