// `millrace workers`: who works, and telling them what to do, on whatever host they are.
import { hostname, userInfo } from 'node:os'
import type { Command } from 'commander'
import { InvalidArgumentError } from 'commander'
import type { CommandArgs, CommandKind } from '../../core/command.ts'
import type { Duration } from '../../core/duration.ts'
import { parseDuration } from '../../core/duration.ts'
import { LIMITS } from '../../core/limits.ts'
import { createRuntime } from '../../runtime/runtime.ts'
import type { WorkerCommand } from '../../store/worker-store.ts'
import { awaitCommand, postCommand } from '../../supervisor/command-notes.ts'
import { createFleet } from '../../supervisor/fleet.ts'
import { secretOf } from '../../supervisor/options.ts'
import { CliError } from '../cli-error.ts'
import { destructive, runs, teach, wholeNumber } from '../command.ts'
import type { Cli, ConsentFlags } from '../command.ts'
import { askConsent, checkConsent } from '../consent.ts'
import { EXIT } from '../exit-codes.ts'
import type { ExitCode } from '../exit-codes.ts'
import { withMill } from '../session.ts'
import type { Session } from '../session.ts'
import type { GlobalFlags } from '../settings.ts'
import { crewOf, crewText, findTarget } from '../workers-view.ts'
import type { Crew, Target } from '../workers-view.ts'
import { addAutoscale, addForce } from './workers-autoscale.ts'
import { addHistory } from './workers-history.ts'

interface TellFlags extends GlobalFlags, ConsentFlags {
  readonly all?: boolean
  readonly pool?: string
  readonly supervisor?: string
  readonly wait?: Duration
  readonly deadline?: Duration
}

const WAIT = '15s'

export function addWorkers(program: Command, cli: Cli): void {
  const workers = program
    .command('workers')
    .summary('look at worker processes, and tell them what to do')
    .description(
      'Lists supervisors, their processes and other workers on all hosts, and tells them what to do through the store.',
    )
  teach(workers, {
    examples: [
      ['workers ls', 'who works'],
      ['workers restart --all', 'one process after the other, on every host'],
      ['workers scale mail 6', 'six processes for the pool mail'],
    ],
    exits: ['notFound', 'unmet', 'timedOut'],
  })
  addList(workers, cli)
  addTell(workers, cli, 'quiet', 'take no new jobs', 'Takes no new jobs; running ones go on.')
  addTell(workers, cli, 'resume', 'take jobs again', 'Takes new jobs again.')
  addTell(
    workers,
    cli,
    'restart',
    'replace processes, one after the other',
    'Replaces processes one after the other: each new one works before the old one drains. Nothing is lost, and most of the work goes on.',
  )
  addTell(
    workers,
    cli,
    'stop',
    'drain and end',
    'Drains and ends: a whole supervisor, one process, whose pool is then one smaller, or a worker without a supervisor. What still runs at the deadline is given back.',
  )
  addScale(workers, cli)
  addForce(workers, cli)
  addAutoscale(workers, cli)
  addHistory(workers, cli)
}

function addList(workers: Command, cli: Cli): void {
  const command = workers
    .command('ls')
    .summary('list supervisors, their processes and other workers')
    .description('Lists supervisors, their pools and processes, and workers without a supervisor, on all hosts.')
  teach(command, {
    examples: [
      ['workers ls', 'all of them'],
      ['workers ls --json', 'for a script'],
    ],
  })
  runs(cli, command, (flags) =>
    withMill(cli.parts, flags, async (session) => {
      const crew = await readCrew(session, cli)
      out(session, crew)
    }),
  )
}

function out(session: Session, crew: Crew): void {
  session.out.show({ supervisors: crew.supervisors, workers: crew.alone }, () => crewText(crew, session.out))
}

function addTell(
  workers: Command,
  cli: Cli,
  kind: Exclude<CommandKind, 'scale'>,
  summary: string,
  description: string,
): void {
  const isStop = kind === 'stop'
  const command = workers
    .command(kind)
    .argument('[id]', 'of a supervisor, a process or a worker, or a part of it that fits one alone')
    .summary(summary)
    .description(description)
    .option('--all', 'every supervisor')
    .option('--pool <name>', 'only this pool')
    .option('--wait <time>', `how long to wait for the answer; default ${WAIT}`)
  if (isStop) destructive(command).option('--deadline <time>', 'for running jobs; default: that of the supervisor')
  teach(command, {
    examples: [
      [`workers ${kind} web1-1a2b3c4d`, 'everything of one supervisor'],
      [`workers ${kind} web1-1a2b3c4d/mail-3`, 'one process'],
      ...(isStop ? [] : [[`workers ${kind} --all --pool mail`, 'one pool on every host'] as const]),
    ],
    exits: ['notFound', 'unmet', 'timedOut'],
  })
  runs<TellFlags>(cli, command, async (flags, [id]) => {
    if ((id === undefined) === (flags.all !== true)) throw new CliError('USAGE', 'name one, or say --all')
    if (isStop) checkConsent(cli.parts.io, flags, 'workers stop')
    const { deadline, pool } = flags
    const args: CommandArgs = {
      ...(pool !== undefined && { pool }),
      ...(deadline !== undefined && { deadlineMs: parseDuration(deadline, '--deadline') }),
    }
    return withMill(cli.parts, flags, async (session) => {
      const crew = await readCrew(session, cli)
      const targets: readonly Target[] =
        id === undefined
          ? crew.supervisors.map((supervisor) => ({ kind: 'supervisor', supervisor }))
          : [findTarget(crew, id)]
      if (targets.length === 0) throw new CliError('NOT_FOUND', 'there is no supervisor')
      if (flags.dryRun)
        return show(
          session,
          targets.map((target) => ({ target: nameOf(target), outcome: 'dry-run', reason: `would ${kind}` })),
        )
      if (isStop) await askConsent(cli.parts.io, flags, { what: 'stop', samples: targets.map(nameOf) })
      const tell = (target: Target): Promise<Answer> => tellOne(session, cli, flags, target, kind, args)
      return show(session, await Promise.all(targets.map(tell)))
    })
  })
}

function addScale(workers: Command, cli: Cli): void {
  const command = workers
    .command('scale')
    .argument('<pool>', 'its name')
    .argument('<count>', 'of processes, or auto: as the autoscaler says')
    .summary('set the number of processes of a pool')
    .description(
      'Sets the number of processes of a pool, which holds until its supervisor ends or you say `auto`. New ones start at once; those that are too many finish their jobs first.',
    )
    .option('--supervisor <id>', 'where, if several supervisors have this pool')
    .option('--all', 'so many on each of them')
    .option('--wait <time>', `how long to wait for the answer; default ${WAIT}`)
  teach(command, {
    examples: [
      ['workers scale mail 6', 'six processes'],
      ['workers scale mail auto', 'follow the autoscaler again'],
    ],
    exits: ['notFound', 'unmet', 'timedOut'],
  })
  runs<TellFlags>(cli, command, (flags, [pool = '', count = '']) => {
    const processes = countOf(count)
    return withMill(cli.parts, flags, async (session) => {
      const crew = await readCrew(session, cli)
      const having = crew.supervisors.filter(({ pools }) => pools.some(({ name }) => name === pool))
      const { supervisor: named } = flags
      const found = named === undefined ? undefined : findTarget(crew, named)
      const meant =
        found === undefined
          ? having
          : having.filter(({ id }) => found.kind === 'supervisor' && found.supervisor.id === id)
      if (meant.length === 0)
        throw new CliError(
          'NOT_FOUND',
          `no supervisor has a pool ${pool}${named === undefined ? '' : ` and is called ${named}`}`,
        )
      if (meant.length > 1 && !flags.all) {
        throw new CliError(
          'USAGE',
          `${meant.length} supervisors have a pool ${pool}: name one with --supervisor, or say --all for ${count} on each; they are ${meant.map(({ id }) => id).join(', ')}`,
        )
      }
      const tell = (supervisor: (typeof meant)[number]): Promise<Answer> =>
        tellOne(session, cli, flags, { kind: 'supervisor', supervisor }, 'scale', { pool, processes })
      return show(session, await Promise.all(meant.map(tell)))
    })
  })
}

function countOf(text: string): number | null {
  if (text === 'auto') return null
  try {
    return wholeNumber(0, LIMITS.processesMax)(text)
  } catch (error) {
    if (error instanceof InvalidArgumentError)
      throw new CliError(
        'USAGE',
        `${text} is no count of processes: write a whole number up to ${LIMITS.processesMax}, or auto`,
      )
    throw error
  }
}

interface Answer {
  readonly target: string
  readonly outcome: 'done' | 'failed' | 'refused' | 'no-answer' | 'sent' | 'dry-run'
  readonly reason: string
}

async function tellOne(
  session: Session,
  cli: Cli,
  flags: TellFlags,
  target: Target,
  kind: CommandKind,
  args: CommandArgs,
): Promise<Answer> {
  const name = nameOf(target)
  if (target.kind === 'worker') return tellWorker(session, target.worker, kind)
  const waitMs = parseDuration(flags.wait ?? WAIT, '--wait')
  const store = session.connections['default']
  if (store === undefined) throw new CliError('NOT_FOUND', 'there is no default connection')
  const runtime = createRuntime({ clock: cli.parts.clock })
  const request = {
    supervisor: target.supervisor.id,
    kind,
    args: target.kind === 'child' ? { ...args, child: target.child.id } : args,
    by: actor(),
  }
  const command = await postCommand(store, runtime, request, secretOf(session.settings.supervise, cli.parts.io.env))
  const entry = await awaitCommand(store, runtime, command, waitMs)
  if (entry === null)
    return { target: name, outcome: 'no-answer', reason: 'it has not answered yet; it may still do it' }
  return { target: name, outcome: entry.outcome, reason: entry.reason }
}

/** Delivered with its next heartbeat. */
async function tellWorker(
  session: Session,
  worker: Extract<Target, { kind: 'worker' }>['worker'],
  kind: CommandKind,
): Promise<Answer> {
  if (kind !== 'quiet' && kind !== 'resume' && kind !== 'stop') {
    throw new CliError('USAGE', `worker ${worker.id} has no supervisor that could ${kind} it`)
  }
  const command: WorkerCommand = { kind }
  const isSent = await session.connections[worker.connection]?.workers.send(worker.id, command)
  return isSent
    ? { target: worker.id, outcome: 'sent', reason: 'it hears it with its next heartbeat' }
    : { target: worker.id, outcome: 'failed', reason: 'it is gone' }
}

async function readCrew({ connections, reads }: Session, cli: Cli): Promise<Crew> {
  const { clock } = cli.parts
  const store = connections['default']
  const fleet = store && createFleet({ notes: store.notes, runtime: createRuntime({ clock }) })
  const [supervisors, workers, time] = await Promise.all([fleet?.list() ?? [], reads.workers(), reads.clock()])
  return crewOf(supervisors, workers, time?.nowMs ?? clock.nowMs())
}

function show({ out: output }: Session, answers: readonly Answer[]): ExitCode {
  output.show(
    { answers },
    () => `${answers.map(({ target, outcome, reason }) => `${target}: ${outcome}: ${reason}`).join('\n')}\n`,
  )
  if (answers.some(({ outcome }) => outcome === 'no-answer')) return EXIT.timedOut
  if (answers.some(({ outcome }) => outcome === 'refused')) return EXIT.unmet
  return answers.some(({ outcome }) => outcome === 'failed') ? EXIT.failed : EXIT.done
}

function nameOf(target: Target): string {
  if (target.kind === 'supervisor') return target.supervisor.id
  return target.kind === 'child' ? target.child.id : target.worker.id
}

/** For the log. Some systems have no name for their user. */
function actor(): string {
  try {
    return `${userInfo().username}@${hostname()}`.slice(0, LIMITS.keyCharsMax)
  } catch {
    return hostname().slice(0, LIMITS.keyCharsMax)
  }
}
