// `millrace tasks`: the built-in tasks. When each runs, how its last run ended, and a run now: here, or by a worker.
import type { Command } from 'commander'
import { TASK_NAMES } from '../../tasks/task.ts'
import { checkTaskName } from '../../tasks/catalogue.ts'
import type { TaskName } from '../../tasks/task.ts'
import { CliError } from '../cli-error.ts'
import { each, runs, teach } from '../command.ts'
import type { Cli } from '../command.ts'
import { EXIT } from '../exit-codes.ts'
import { withMill } from '../session.ts'
import type { Session } from '../session.ts'
import { resultText, taskTable } from '../task-text.ts'

export function addTasks(program: Command, cli: Cli): void {
  const tasks = program
    .command('tasks')
    .summary('look at the built-in tasks, run one')
    .description('Looks at the built-in tasks, such as backups and clean-up, and runs one now, here or by a worker.')
  teach(tasks, {
    examples: [
      ['tasks ls', 'when each runs, and how its last run ended'],
      ['tasks run backup --set dir=/var/backups/millrace', 'a backup now, here'],
      ['tasks run retention --dry-run', 'what would go'],
    ],
  })
  addList(tasks, cli)
  addRun(tasks, cli)
}

function addList(tasks: Command, cli: Cli): void {
  const command = tasks
    .command('ls')
    .summary('list the built-in tasks')
    .description('Lists the built-in tasks with their next run, their last one and its result.')
  teach(command, { examples: [['tasks ls', 'all of them']] })
  runs(cli, command, (flags) =>
    withMill(cli.parts, flags, async ({ mill, out }) => {
      const tasks = await mill.tasks.list()
      out.show({ tasks }, () => taskTable(tasks, out))
    }),
  )
}

interface RunFlags {
  readonly set?: readonly string[]
  readonly connection?: string
  readonly dryRun?: boolean
  readonly queue?: boolean
}

function addRun(tasks: Command, cli: Cli): void {
  const command = tasks
    .command('run')
    .summary('run a task now')
    .argument('<name>', TASK_NAMES.join(', '))
    .description(
      'Runs a built-in task in this process and shows its result; its options are those of the configuration. With --queue a worker runs it, with the options of its own configuration.',
    )
    .option('--set <option=value>', 'change an option of this run, such as keep=3d; may be given several times', each)
    .option('--dry-run', 'say what would be done, and do nothing')
    .option('--queue', 'enqueue it for a worker, and print the id of the job')
    .option('--connection <name>', 'the store to work on; default: the default one')
  teach(command, {
    examples: [
      ['tasks run backup --set dir=/var/backups/millrace --set keep=14d', 'a backup now, here'],
      ['tasks run tracking --dry-run', 'what would go'],
      ['tasks run retention --queue', 'by a worker of the queue millrace.tasks'],
    ],
    exits: ['notFound', 'unmet'],
  })
  runs<RunFlags>(cli, command, (flags, [asked = '']) => {
    const name = checkTaskName(asked)
    if (!flags.queue) return withMill(cli.parts, flags, (session) => runHere(cli, session, name, flags))
    if (flags.set !== undefined) {
      throw new CliError('USAGE', '--queue runs a task with the options of the worker: leave out --set')
    }
    return withMill(cli.parts, flags, (session) => enqueue(session, name, flags), { jobs: 'tasks run --queue' })
  })
}

async function enqueue({ mill, out, settings }: Session, name: TaskName, flags: RunFlags): Promise<void> {
  if (settings.options.tasks === undefined) {
    const message = 'no worker of this configuration knows the tasks: add tasks: {} to it, or leave out --queue'
    throw new CliError('UNMET', message)
  }
  const { dryRun = false, connection } = flags
  const input = { ...(dryRun && { dryRun }), ...(connection !== undefined && { connection }) }
  const { id, duplicate } = await mill.tasks.enqueue(name, input)
  out.show({ task: name, id, duplicate }, () => `${id}\n`)
  if (duplicate) out.note('it waits or runs already: this is the id of that job')
}

async function runHere(
  { parts: { io } }: Cli,
  { mill, out }: Session,
  name: TaskName,
  flags: RunFlags,
): Promise<number> {
  const stop = new AbortController()
  const forget = io.onSignal(() => {
    if (stop.signal.aborted) io.exit(EXIT.interrupted)
    stop.abort(new CliError('INTERRUPTED', `the task ${name} was stopped; it is harmless to run it again`))
  })
  const { connection, dryRun = false, set = [] } = flags
  const where = { signal: stop.signal, env: io.env, ...(connection !== undefined && { connection }) }
  try {
    const result = await mill.tasks.run(name, { ...toOptions(set), dryRun }, where)
    out.show({ task: name, result }, () => resultText(result, out))
    return result.outcome === 'done' ? EXIT.done : EXIT.unmet
  } finally {
    forget()
  }
}

/** `keep=3d` and `retries=5`; the task itself says which there are. */
function toOptions(set: readonly string[]): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    set.map((text) => {
      const at = text.indexOf('=')
      if (at < 1) throw new CliError('USAGE', `--set ${text} is no option with its value: write --set keep=3d`)
      const value = text.slice(at + 1)
      return [text.slice(0, at), /^\d{1,15}$/.test(value) ? Number(value) : value]
    }),
  )
}
