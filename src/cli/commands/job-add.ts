// `millrace jobs add`: enqueue one job from a shell, and on request wait for its result.
import type { Command } from 'commander'
import type { EnqueueOptions } from '../../client/enqueue-options.ts'
import type { Duration } from '../../core/duration.ts'
import type { Priority } from '../../core/priority.ts'
import { CliError } from '../cli-error.ts'
import { each, list, priority, runs, teach, wholeNumber } from '../command.ts'
import type { Cli } from '../command.ts'
import type { CliIo } from '../io.ts'
import { withMill } from '../session.ts'
import { inline } from '../text.ts'

interface AddFlags {
  readonly priority?: Priority
  readonly delay?: Duration
  readonly at?: string
  readonly attempts?: number
  readonly timeout?: Duration
  readonly tag?: readonly string[]
  readonly unique?: string
  readonly group?: string
  readonly limitKey?: string
  readonly batch?: string
  readonly after?: readonly string[]
  readonly id?: string
  readonly wait?: Duration
}

const PAYLOAD_CHARS_MAX = 1_048_576

export function addJobAdd(jobs: Command, cli: Cli): void {
  const command = jobs
    .command('add')
    .argument('<job>', 'the name of a job of your configuration')
    .argument('[payload]', 'its input as JSON; - reads it from stdin')
    .summary('enqueue a job')
    .description(
      'Enqueues a job. Its input is checked against the schema of the job, so this needs your configuration.',
    )
    .option('-p, --priority <priority>', '0 (most urgent) … 32767, or critical, high, normal, low', priority)
    .option('-d, --delay <time>', 'start this long from now, such as 5m')
    .option('--at <date>', 'start not before this moment, ISO 8601')
    .option('--attempts <count>', 'runs before it counts as failed', wholeNumber(1))
    .option('--timeout <time>', 'how long one run may take')
    .option('-t, --tag <list>', 'tags, with commas between them', list)
    .option('-u, --unique <key>', 'only one live job may have this key')
    .option('--group <key>', 'one at a time, in order, with others of this group')
    .option('--limit-key <key>', 'whose limit it counts against')
    .option('--batch <id>', 'the open batch it joins')
    .option('--after <id>', 'run after this job has completed; may be repeated', each)
    .option('--id <uuid>', 'an id of your own: adding the same again changes nothing')
    .option('-w, --wait <time>', 'wait up to this long for the result')
  teach(command, {
    examples: [
      ['jobs add hello \'{"name":"Ada"}\'', 'now'],
      ['jobs add report --delay 1h --priority low', 'later'],
      ['jobs add resize - < image.json', 'input from a file'],
      ['jobs add hello \'{"name":"Ada"}\' --wait 10s', 'print the result; 124 when it takes longer'],
    ],
    exits: ['notFound', 'timedOut'],
  })
  runs<AddFlags>(cli, command, (flags, [name = '', payload]) =>
    withMill(
      cli.parts,
      flags,
      async ({ mill, out }) => {
        const input = payload === undefined ? undefined : parsePayload(await payloadText(payload, cli.parts.io))
        const handle = await mill.enqueue(name, input as never, enqueueOptions(flags)) // checked by the schema of the job
        const { id, outcome, duplicate, connection } = handle
        const result = flags.wait === undefined ? undefined : await handle.result({ timeout: flags.wait })
        const document = {
          id,
          outcome,
          duplicate,
          connection,
          ...(flags.wait !== undefined && { result: result ?? null }),
        }
        out.show(document, () => (flags.wait === undefined ? `${id}\n` : `${inline(result)}\n`))
        if (duplicate) out.note(`${id} was there before: it stands for this job`)
      },
      { jobs: 'jobs add' },
    ),
  )
}

function enqueueOptions(flags: AddFlags): EnqueueOptions {
  const { delay, attempts, timeout, unique, group, limitKey, batch, id, tag, after } = flags
  return {
    ...(flags.priority !== undefined && { priority: flags.priority }),
    ...(delay !== undefined && { delay }),
    ...(flags.at !== undefined && { runAt: dateOf(flags.at) }),
    ...(attempts !== undefined && { attempts }),
    ...(timeout !== undefined && { timeout }),
    ...(tag !== undefined && { tags: tag }),
    ...(unique !== undefined && { unique }),
    ...(group !== undefined && { group }),
    ...(limitKey !== undefined && { limitKey }),
    ...(batch !== undefined && { batch }),
    ...(after !== undefined && { after }),
    ...(id !== undefined && { id }),
  }
}

function dateOf(text: string): Date {
  const date = new Date(text)
  if (!Number.isNaN(date.getTime())) return date
  throw new CliError('USAGE', `--at is ${JSON.stringify(text)}: write a date such as 2030-01-31T09:00:00Z`)
}

async function payloadText(payload: string, io: CliIo): Promise<string> {
  if (payload !== '-') return payload
  let text = ''
  for await (const chunk of io.stdin) {
    text += String(chunk)
    if (text.length > PAYLOAD_CHARS_MAX) throw new CliError('USAGE', 'the payload on stdin is larger than 1 MB')
  }
  return text
}

function parsePayload(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    const because = error instanceof Error ? `: ${error.message}` : ''
    const message = `the payload is not JSON${because}; write text in double quotes, '"like this"', and objects as '{"to":"ada"}'`
    throw new CliError('USAGE', message)
  }
}
