// `millrace dead replay` and `millrace dead rm`: act on dead letters by id, or on all that a filter finds. Both
// ask, for both can surprise: a replay sends the mail again, and what is removed is gone.
import type { Command } from 'commander'
import type { Job } from '../../client/job-view.ts'
import { isMillraceError } from '../../core/errors.ts'
import type { JobId } from '../../core/job.ts'
import { LIMITS } from '../../core/limits.ts'
import { sleep } from '../../runtime/clock.ts'
import { bulkOptions, checkChoice, forEachJob, howMany, tally } from '../bulk.ts'
import type { BulkFlags } from '../bulk.ts'
import { CliError } from '../cli-error.ts'
import { destructive, runs, teach, wholeNumber } from '../command.ts'
import type { Cli } from '../command.ts'
import { askConsent, checkConsent } from '../consent.ts'
import { deadFilterOptions, toDeadFilter } from '../dead-filter-flags.ts'
import type { DeadFlags } from '../dead-filter-flags.ts'
import { pickJobs } from '../job-filter-flags.ts'
import type { Picked } from '../job-filter-flags.ts'
import { jobLine } from '../job-text.ts'
import { withMill } from '../session.ts'
import type { Session } from '../session.ts'
import type { GlobalFlags } from '../settings.ts'
import { counted } from '../text.ts'

type ActFlags = GlobalFlags & DeadFlags & BulkFlags

interface ReplayFlags extends ActFlags {
  readonly asNew?: boolean
  readonly perSecond?: number
  readonly actor?: string
}

export function addDeadReplay(dead: Command, cli: Cli): void {
  const command = dead
    .command('replay')
    .summary('run them again')
    .argument('[ids...]', 'of the jobs')
    .description(
      'Runs dead letters again with fresh attempts: the same jobs, or with --as-new new ones linked to them.',
    )
    .option('--as-new', 'as new jobs; the failed ones stay as they are')
    .option('--per-second <count>', 'not faster than this', wholeNumber(1, 10_000))
    .option('--actor <name>', 'who asked; kept in the audit trail')
  bulkOptions(destructive(deadFilterOptions(command)))
  teach(command, {
    examples: [
      ['dead replay 0197… --yes', 'one job'],
      ['dead replay --queue mail --error "connection refused" --dry-run', 'how many would it be'],
      ['dead replay --all --per-second 50', 'all of them, gently, after asking'],
    ],
    exits: ['notFound', 'unmet'],
  })
  runs<ReplayFlags>(cli, command, (flags, ids) =>
    act(cli, flags, ids, 'replay', async ({ mill }, jobs) => {
      const { asNew = false, perSecond, actor } = flags
      const options = actor === undefined ? {} : { actor }
      const replayOne = async (job: Pick<Job, 'id' | 'connection'>): Promise<string> => {
        try {
          if (asNew) await mill.deadLetters.replayAsNew(job, options)
          else await mill.deadLetters.replay(job, options)
          return 'replayed'
        } catch (error) {
          // Of many, one that cannot be replayed must not keep the others; of one it is the answer.
          if (jobs.length === 1 || !isSkipped(error)) throw error
          return 'skipped'
        }
      }
      if (perSecond === undefined) return forEachJob(jobs, replayOne)
      const answers: string[] = []
      for (let at = 0; at < jobs.length; at += perSecond) {
        if (at > 0) await sleep(cli.parts.clock, 1_000)
        answers.push(...(await forEachJob(jobs.slice(at, at + perSecond), replayOne)))
      }
      return answers
    }),
  )
}

export function addDeadRemove(dead: Command, cli: Cli): void {
  const command = dead
    .command('rm')
    .summary('remove them by id or filter')
    .argument('[ids...]', 'of the jobs')
    .description('Removes dead letters for good. A job that is not failed is never touched.')
  bulkOptions(destructive(deadFilterOptions(command)))
  teach(command, {
    examples: [
      ['dead rm 0197… --yes', 'one'],
      ['dead rm --queue mail --tag test --dry-run', 'how many would it be'],
    ],
    exits: ['notFound'],
  })
  runs<ActFlags>(cli, command, (flags, ids) =>
    act(cli, flags, ids, 'remove', ({ mill }, jobs) =>
      forEachJob(jobs, async (job) => ((await mill.deadLetters.remove(job)) ? 'removed' : 'skipped')),
    ),
  )
}

/** `replayed` or `removed`, or `skipped` by somebody else who was faster. */
type Act = (session: Session, jobs: readonly Job[]) => Promise<readonly string[]>

async function act(cli: Cli, flags: ActFlags, ids: readonly string[], verb: 'replay' | 'remove', perform: Act) {
  const { io, clock } = cli.parts
  const filter = toDeadFilter(flags, clock.nowMs())
  checkChoice(ids, filter, flags, verb)
  checkConsent(io, flags, `dead ${verb === 'replay' ? 'replay' : 'rm'}`)
  return withMill(cli.parts, flags, async (session) => {
    const { mill, out } = session
    const limit = flags.limit ?? LIMITS.bulkJobsMax
    const picked =
      ids.length > 0 ? await named(session, ids) : await pickJobs((page) => mill.deadLetters.list(filter, page), limit)
    const { jobs, more } = picked
    const dryRun = flags.dryRun ?? false
    const document = (answers: readonly string[]) => ({
      dryRun,
      matched: jobs.length,
      more,
      jobs: jobs.map(({ id }, index): { readonly id: JobId; readonly answer: string | null } => {
        return { id, answer: answers[index] ?? null }
      }),
    })
    if (dryRun) {
      out.show(document([]), () => `would ${verb} ${howMany(picked)}\n`)
      return
    }
    if (jobs.length > 0) await askConsent(io, flags, { what: `${verb} ${howMany(picked)}`, samples: jobs.map(jobLine) })
    const answers = await perform(session, jobs)
    out.show(
      document(answers),
      () => `${counted(jobs.length, 'dead letter')}${jobs.length === 0 ? '' : `: ${tally(answers)}`}\n`,
    )
  })
}

function isSkipped(error: unknown): boolean {
  return ['JOB_NOT_FOUND', 'NOT_REPLAYABLE', 'UNIQUE_KEY_TAKEN'].some(
    (code) => isMillraceError(error) && error.code === code,
  )
}

/** All ids are looked up before the first is touched: a typo in one of them changes nothing. */
async function named({ mill }: Session, ids: readonly string[]): Promise<Picked> {
  const jobs = await Promise.all(
    ids.map(async (id) => {
      const job = await mill.jobs.get(id)
      if (job === null) {
        throw new CliError('NOT_FOUND', `there is no job ${id}: it was removed, or it lives on another connection`)
      }
      if (job.status !== 'failed') throw new CliError('UNMET', `job ${id} is no dead letter: it is ${job.status}`)
      return job
    }),
  )
  return { jobs, more: false }
}
