// `millrace queues`: look at queues, pause and resume them, change their settings.
import { InvalidArgumentError } from 'commander'
import type { Command } from 'commander'
import type { QueueOptions } from '../../client/queue-options.ts'
import type { Queue } from '../../client/queues.ts'
import type { Duration } from '../../core/duration.ts'
import { formatDuration } from '../../core/duration.ts'
import type { Priority } from '../../core/priority.ts'
import type { RateLimit, RateLimitOptions } from '../../core/rate.ts'
import { CliError } from '../cli-error.ts'
import { priority, runs, teach, wholeNumber } from '../command.ts'
import type { Cli } from '../command.ts'
import type { Output } from '../output.ts'
import { withMill } from '../session.ts'

export function addQueues(program: Command, cli: Cli): void {
  const queues = program
    .command('queues')
    .summary('look at queues, pause, resume and configure them')
    .description('Looks at queues, pauses and resumes them, and changes their settings while everything runs.')
  teach(queues, {
    examples: [
      ['queues ls', 'their settings and limits'],
      ['queues pause mail', 'no job of it starts any more; running ones finish'],
      [
        'queues set mail --concurrency 5 --rate 100/m',
        'at most 5 at once, 100 starts per minute, on all workers together',
      ],
    ],
  })
  addList(queues, cli)
  addPause(queues, cli, 'pause')
  addPause(queues, cli, 'resume')
  addSet(queues, cli)
}

function addList(queues: Command, cli: Cli): void {
  const command = queues
    .command('ls')
    .summary('list queues with their settings')
    .description('Lists all queues with their settings.')
  teach(command, {
    examples: [
      ['queues ls', 'all of them'],
      ['queues ls --json', 'for a script'],
    ],
  })
  runs(cli, command, (flags) =>
    withMill(cli.parts, flags, async ({ mill, out }) => {
      const list = await mill.queues.list()
      out.show({ queues: list }, () => queueTable(list, out))
    }),
  )
}

function addPause(queues: Command, cli: Cli, verb: 'pause' | 'resume'): void {
  const command = queues
    .command(verb)
    .argument('<queue>', 'its name')
    .summary(verb === 'pause' ? 'stop new starts of a queue' : 'let a paused queue go on')
    .description(
      verb === 'pause'
        ? 'Stops new starts of a queue on every process. Running jobs finish; enqueueing still works.'
        : 'Lets a paused queue go on.',
    )
  teach(command, { examples: [[`queues ${verb} mail`, 'takes effect within a second']], exits: ['notFound'] })
  runs(cli, command, (flags, [name = '']) =>
    withMill(cli.parts, flags, async ({ mill, out }) => {
      const queue = await mill.queues[verb](name)
      out.show({ queue }, () => `queue ${name} is ${queue.paused ? 'paused' : 'active'}\n`)
    }),
  )
}

/** Commander makes an empty text of null, so "no limit" stays a word until all is parsed. */
type OrNone<Value> = Value | 'none'

interface SetFlags {
  readonly concurrency?: OrNone<number>
  readonly rate?: OrNone<RateLimitOptions>
  readonly keyConcurrency?: OrNone<number>
  readonly keyRate?: OrNone<RateLimitOptions>
  readonly priority?: Priority
  readonly attempts?: number
  readonly keepCompleted?: OrNone<Duration>
  readonly keepFailed?: OrNone<Duration>
  readonly keepCancelled?: OrNone<Duration>
  readonly lowerLaneShare?: number
  readonly create?: boolean
}

function addSet(queues: Command, cli: Cli): void {
  const count = orNone((text) => wholeNumber(1)(text))
  const keep = orNone((text) => text as Duration) // the library checks it
  const command = queues
    .command('set')
    .argument('<queue>', 'its name')
    .summary('change settings and limits')
    .description('Changes settings of a queue; what is not named stays. `none` takes a limit away.')
    .option('--concurrency <count>', 'how many of its jobs run at once, on all workers together, or none', count)
    .option('--rate <count/time>', 'how many start in this time, such as 100/m, 10/s or 500/10m, or none', orNone(rate))
    .option('--key-concurrency <count>', 'the same per limit key', count)
    .option('--key-rate <count/time>', 'the same per limit key', orNone(rate))
    .option('--priority <priority>', 'of jobs that name none: 0 … 32767, or critical, high, normal, low', priority)
    .option('--attempts <count>', 'of jobs whose kind says nothing', wholeNumber(1))
    .option('--keep-completed <time>', 'how long completed jobs are kept, such as 7d; none: the default', keep)
    .option('--keep-failed <time>', 'how long failed jobs are kept', keep)
    .option('--keep-cancelled <time>', 'how long cancelled jobs are kept', keep)
    .option(
      '--lower-lane-share <count>',
      '1 of this many starts goes to a waiting lower lane; 0: strict',
      wholeNumber(0),
    )
    .option('--create', 'make the queue if it is not there')
  teach(command, {
    examples: [
      ['queues set mail --concurrency 5', 'at most 5 at once'],
      ['queues set mail --rate none', 'as fast as the workers can'],
      ['queues set reports --priority low --create', 'a queue that is not there yet'],
    ],
    exits: ['notFound'],
  })
  runs<SetFlags>(cli, command, (flags, [name = '']) =>
    withMill(cli.parts, flags, async ({ mill, out }) => {
      const options = queueOptions(flags)
      if (Object.keys(options).length === 0) {
        throw new CliError('USAGE', 'nothing to set: name at least one setting, such as --concurrency 5')
      }
      // A typo must not make a queue that nobody works on.
      if (!flags.create && (await mill.queues.get(name)) === null) {
        throw new CliError('NOT_FOUND', `there is no queue ${name}: correct the name, or add --create`)
      }
      const queue = await mill.queues.configure(name, options)
      out.show({ queue }, () => queueTable([queue], out))
    }),
  )
}

function queueOptions(flags: SetFlags): QueueOptions {
  const { concurrency, rate: perTime, keyConcurrency, keyRate, attempts, lowerLaneShare } = flags
  const perKey = {
    ...(keyConcurrency !== undefined && { concurrency: orNull(keyConcurrency) }),
    ...(keyRate !== undefined && { rate: orNull(keyRate) }),
  }
  const retention = {
    ...(flags.keepCompleted !== undefined && { completed: orNull(flags.keepCompleted) }),
    ...(flags.keepFailed !== undefined && { failed: orNull(flags.keepFailed) }),
    ...(flags.keepCancelled !== undefined && { cancelled: orNull(flags.keepCancelled) }),
  }
  return {
    ...(concurrency !== undefined && { concurrency: orNull(concurrency) }),
    ...(perTime !== undefined && { rate: orNull(perTime) }),
    ...(Object.keys(perKey).length > 0 && { perKey }),
    ...(flags.priority !== undefined && { priority: flags.priority }),
    ...(attempts !== undefined && { attempts }),
    ...(Object.keys(retention).length > 0 && { retention }),
    ...(lowerLaneShare !== undefined && { lowerLaneShare }),
  }
}

function orNone<Value>(parse: (text: string) => Value): (text: string) => OrNone<Value> {
  return (text) => (text === 'none' ? text : parse(text))
}

function orNull<Value>(value: OrNone<Value>): Value | null {
  return value === 'none' ? null : value
}

/** `100/m` is 100 in a minute. */
function rate(text: string): RateLimitOptions {
  const match = /^(\d+)\/(\d*)(ms|s|m|h|d)$/.exec(text)
  if (match === null) throw new InvalidArgumentError('Write how many in what time: 100/m, 10/s, 500/10m.')
  const [, limit = '', every = '', unit = ''] = match
  // The pattern allows nothing else.
  return { limit: Number(limit), per: `${every === '' ? '1' : every}${unit}` as Duration }
}

function queueTable(queues: readonly Queue[], out: Output): string {
  if (queues.length === 0) return 'no queues yet: a queue is made by its first job\n'
  return out.table<Queue>(
    [
      { title: 'QUEUE', of: ({ name, connection }) => (connection === 'default' ? name : `${connection}/${name}`) },
      {
        title: 'STATE',
        of: ({ paused }) => (paused ? 'paused' : 'active'),
        style: ({ paused }) => (paused ? 'yellow' : undefined),
      },
      { title: 'PRIO', of: (queue) => queue.priority, align: 'right' },
      { title: 'TRIES', of: ({ attempts }) => attempts, align: 'right' },
      { title: 'AT ONCE', of: ({ limits }) => limits.concurrency ?? '-', align: 'right' },
      { title: 'RATE', of: ({ limits }) => rateText(limits.rate) },
      { title: 'PER KEY', of: ({ limits }) => keyText(limits) },
      { title: 'KEPT', of: ({ retention }) => keptText(retention), flex: true },
    ],
    queues,
  )
}

function keyText({ perKeyConcurrency, perKeyRate }: Queue['limits']): string {
  const parts = [
    perKeyConcurrency === null ? '' : `${perKeyConcurrency} at once`,
    perKeyRate === null ? '' : rateText(perKeyRate),
  ]
  return parts.filter((part) => part !== '').join(', ') || '-'
}

function rateText(limit: RateLimit | null): string {
  return limit === null ? '-' : `${limit.limit} per ${formatDuration(limit.perMs)}`
}

function keptText({ completedMs, failedMs, cancelledMs }: Queue['retention']): string {
  const kept = [
    ['completed', completedMs],
    ['failed', failedMs],
    ['cancelled', cancelledMs],
  ] as const
  const said = kept.flatMap(([name, ms]) => (ms === null ? [] : [`${name} ${formatDuration(ms)}`]))
  return said.join(', ') || 'by default'
}
