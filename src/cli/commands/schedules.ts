// `millrace schedules`: look at recurring jobs, run one now, pause, resume and remove them.
import type { Command } from 'commander'
import type { Schedule } from '../../client/schedules.ts'
import { CliError } from '../cli-error.ts'
import { destructive, runs, teach } from '../command.ts'
import type { Cli, ConsentFlags } from '../command.ts'
import { askConsent, checkConsent } from '../consent.ts'
import type { Output } from '../output.ts'
import { rhythm } from '../schedule-text.ts'
import { withMill } from '../session.ts'
import type { Session } from '../session.ts'

export function addSchedules(program: Command, cli: Cli): void {
  const schedules = program
    .command('schedules')
    .summary('look at recurring jobs, run, pause, resume and remove them')
    .description(
      'Looks at recurring jobs, runs one now, pauses, resumes and removes them. They are made in code, with mill.schedules.upsert().',
    )
  teach(schedules, {
    examples: [
      ['schedules ls', 'when each runs next'],
      ['schedules run nightly-report', 'an extra run now'],
      ['schedules pause nightly-report', 'until it is resumed'],
    ],
  })
  addList(schedules, cli)
  addRun(schedules, cli)
  addPause(schedules, cli, 'pause')
  addPause(schedules, cli, 'resume')
  addRemove(schedules, cli)
}

function addList(schedules: Command, cli: Cli): void {
  const command = schedules
    .command('ls')
    .summary('list schedules')
    .description('Lists all schedules with their last and their next run.')
  teach(command, { examples: [['schedules ls', 'all of them']] })
  runs(cli, command, (flags) =>
    withMill(cli.parts, flags, async ({ mill, out }) => {
      const list = await mill.schedules.list()
      out.show({ schedules: list }, () => (list.length === 0 ? 'no schedules\n' : scheduleTable(list, out)))
    }),
  )
}

function addRun(schedules: Command, cli: Cli): void {
  const command = schedules
    .command('run')
    .summary('an extra run now')
    .argument('<name>', 'of the schedule')
    .description('Enqueues an extra job of a schedule now; its rhythm is not touched. Needs your configuration.')
  teach(command, { examples: [['schedules run nightly-report', 'prints the id of the job']], exits: ['notFound'] })
  runs(cli, command, (flags, [name = '']) =>
    withMill(
      cli.parts,
      flags,
      async ({ mill, out }) => {
        const { id, connection } = await mill.schedules.runNow(name)
        out.show({ schedule: name, id, connection }, () => `${id}\n`)
      },
      { jobs: 'schedules run' },
    ),
  )
}

function addPause(schedules: Command, cli: Cli, verb: 'pause' | 'resume'): void {
  const command = schedules
    .command(verb)
    .summary(verb === 'pause' ? 'stop a schedule' : 'let a paused schedule go on')
    .argument('<name>', 'of the schedule')
    .description(
      verb === 'pause'
        ? 'Stops a schedule from running, also through deployments that upsert it.'
        : 'Lets a paused schedule go on with its next tick; those missed meanwhile are not made up for.',
    )
  teach(command, { examples: [[`schedules ${verb} nightly-report`, 'takes effect at once']], exits: ['notFound'] })
  runs(cli, command, (flags, [name = '']) =>
    withMill(cli.parts, flags, async (session) => {
      await session.mill.schedules[verb](name)
      const schedule = await known(session, name)
      session.out.show({ schedule }, () => scheduleTable([schedule], session.out))
    }),
  )
}

function addRemove(schedules: Command, cli: Cli): void {
  const command = schedules
    .command('rm')
    .summary('remove a schedule')
    .argument('<name>', 'of the schedule')
    .description(
      'Removes a schedule, after asking. Jobs that it has enqueued stay; code that upserts it brings it back.',
    )
  destructive(command)
  teach(command, { examples: [['schedules rm nightly-report --yes', 'in a script']], exits: ['notFound'] })
  runs<ConsentFlags>(cli, command, (flags, [name = '']) => {
    checkConsent(cli.parts.io, flags, 'schedules rm')
    return withMill(cli.parts, flags, async (session) => {
      const schedule = await known(session, name)
      const dryRun = flags.dryRun ?? false
      if (!dryRun) {
        const what = `remove 1 schedule, ${name}: ${rhythm(schedule)} ${schedule.job} in ${schedule.queue}`
        await askConsent(cli.parts.io, flags, { what })
      }
      const removed = !dryRun && (await session.mill.schedules.remove(name))
      session.out.show({ dryRun, schedule: name, removed }, () => {
        return dryRun ? `would remove 1 schedule: ${name}\n` : `schedule ${name} is removed\n`
      })
    })
  })
}

async function known({ mill }: Session, name: string): Promise<Schedule> {
  const schedule = await mill.schedules.get(name)
  if (schedule !== null) return schedule
  throw new CliError('NOT_FOUND', `there is no schedule ${name}: millrace schedules ls lists all of them`)
}

function scheduleTable(schedules: readonly Schedule[], out: Output): string {
  return out.table<Schedule>(
    [
      { title: 'SCHEDULE', of: ({ name }) => name },
      { title: 'RHYTHM', of: rhythm },
      { title: 'JOB', of: ({ job }) => job },
      { title: 'QUEUE', of: ({ queue }) => queue },
      {
        title: 'STATE',
        of: ({ enabled }) => (enabled ? 'active' : 'paused'),
        style: ({ enabled }) => (enabled ? undefined : 'yellow'),
      },
      { title: 'NEXT', of: ({ nextRunAt, enabled }) => (enabled ? out.time(nextRunAt) : '-') },
      { title: 'LAST', of: ({ lastRunAt }) => out.time(lastRunAt), flex: true },
    ],
    schedules,
  )
}
