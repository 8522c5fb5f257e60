// `millrace workers force` and `millrace workers autoscale`: telling the autoscaler what to do, wherever its leader is.
import type { Command } from 'commander'
import type { Duration } from '../../core/duration.ts'
import { parseDuration } from '../../core/duration.ts'
import { SCALING } from '../../core/limits.ts'
import { createRuntime } from '../../runtime/runtime.ts'
import { forceResult, forceScale } from '../../supervisor/scaling-requests.ts'
import { readSwitches, switchScaling } from '../../supervisor/scaling-switch.ts'
import { CliError } from '../cli-error.ts'
import { runs, teach, wholeNumber } from '../command.ts'
import type { Cli } from '../command.ts'
import { EXIT } from '../exit-codes.ts'
import { withMill } from '../session.ts'
import { notesOf } from './workers-history.ts'

interface ForceFlags {
  readonly queue?: string
  readonly pool?: string
  readonly reason: string
  readonly by?: string
  readonly beyondLimits?: boolean
  readonly wait?: Duration
}

const WAIT = '15s'

export function addForce(workers: Command, cli: Cli): void {
  const command = workers
    .command('force')
    .argument('<count>', 'of workers, on all hosts together')
    .summary('make the autoscaler take a size now')
    .description(
      'Makes the autoscaler take a size now, whatever its cooldown says. It holds for one cooldown; then the load decides again. To fix a size for good, use `millrace workers scale`.',
    )
    .option('-q, --queue <name>', 'for the pools that serve this queue')
    .option('--pool <name>', 'for this pool')
    .requiredOption('--reason <text>', 'why; it is kept in the history')
    .option('--by <name>', 'who; default: operator')
    .option('--beyond-limits', 'past the minimum and maximum of the queue; never past those of the hosts')
    .option('--wait <time>', `how long to wait for the answer; default ${WAIT}`)
  teach(command, {
    examples: [
      ['workers force 12 --queue mail --reason "newsletter at nine"', 'twelve workers, at once'],
      ['workers force 1 --pool reports --reason "the database is full"', 'as few as there may be'],
    ],
    exits: ['unmet', 'timedOut'],
  })
  runs<ForceFlags>(cli, command, (flags, [count = '']) => {
    const { queue, pool, reason, by, beyondLimits } = flags
    if ((queue === undefined) === (pool === undefined)) throw new CliError('USAGE', 'name --queue or --pool, not both')
    const target = queue === undefined ? { pool: pool ?? '' } : { queue }
    const to = countOf(count)
    const waitMs = parseDuration(flags.wait ?? WAIT, '--wait')
    return withMill(cli.parts, flags, async (session) => {
      const parts = { notes: notesOf(session), runtime: createRuntime({ clock: cli.parts.clock }) }
      const options = { ...(by !== undefined && { by }), ...(beyondLimits !== undefined && { beyondLimits }) }
      const result = await forceResult(parts, await forceScale(parts, target, to, reason, options), waitMs)
      if (!result.ok) throw new CliError('UNMET', result.message)
      session.out.show({ pools: result.pools }, () =>
        result.pools.map((one) => `pool ${one.pool}: ${one.from} → ${one.to}\n`).join(''),
      )
      return EXIT.done
    })
  })
}

export function addAutoscale(workers: Command, cli: Cli): void {
  const command = workers
    .command('autoscale')
    .argument('[state]', 'on or off; nothing: tell which it is')
    .summary('switch the autoscaler off and on')
    .description(
      'Switches the autoscaler off or on while everything runs, for all queues or for one, or tells what is off. What is off stays at its size and can still be forced.',
    )
    .option('-q, --queue <name>', 'only for this queue')
  teach(command, {
    examples: [
      ['workers autoscale off', 'nothing changes its size any more'],
      ['workers autoscale on --queue mail', 'this queue again'],
    ],
  })
  runs<{ readonly queue?: string }>(cli, command, ({ queue, ...flags }, [state]) => {
    if (state !== undefined && state !== 'on' && state !== 'off') throw new CliError('USAGE', 'say on or off')
    return withMill(cli.parts, flags, async (session) => {
      const notes = notesOf(session)
      if (state !== undefined) await switchScaling(notes, queue ?? null, state === 'on')
      const { off } = await readSwitches(notes)
      const text = off.includes('*') ? 'off for all queues' : off.length > 0 ? `off for ${off.join(', ')}` : 'on'
      session.out.show({ off }, () => `autoscaling is ${text}\n`)
    })
  })
}

function countOf(text: string): number {
  try {
    return wholeNumber(0, SCALING.workersMax)(text)
  } catch {
    throw new CliError('USAGE', `${text} is no count of workers: write a whole number up to ${SCALING.workersMax}`)
  }
}
