// `millrace workers history`: what the autoscaler did, and why.
import type { Command } from 'commander'
import { readScalingHistory } from '../../supervisor/scaling-history.ts'
import type { ScaleEvent } from '../../supervisor/plan-notes.ts'
import { CliError } from '../cli-error.ts'
import { runs, teach, wholeNumber } from '../command.ts'
import type { Cli } from '../command.ts'
import type { Output } from '../output.ts'
import { withMill } from '../session.ts'
import type { Session } from '../session.ts'

interface HistoryFlags {
  readonly pool?: string
  readonly queue?: string
  readonly limit?: number
}

const LIMIT_MAX = 500

export function addHistory(workers: Command, cli: Cli): void {
  const command = workers
    .command('history')
    .summary('what the autoscaler did, and why')
    .description('Lists the steps of the autoscaler, newest first: from what to what, why, and with which numbers.')
    .option('--pool <name>', 'of this pool')
    .option('-q, --queue <name>', 'that were made for this queue')
    .option('-l, --limit <count>', 'how many; default 50', wholeNumber(1, LIMIT_MAX))
  teach(command, {
    examples: [
      ['workers history', 'the last 50 steps'],
      ['workers history --pool mail --json', 'one pool, with all numbers'],
    ],
  })
  runs<HistoryFlags>(cli, command, ({ pool, queue, limit, ...flags }) =>
    withMill(cli.parts, flags, async (session) => {
      const events = await readScalingHistory(notesOf(session), {
        nowMs: cli.parts.clock.nowMs(),
        ...(pool !== undefined && { pool }),
        ...(queue !== undefined && { queue }),
        ...(limit !== undefined && { limit }),
      })
      const document = events.map(({ atMs, ...event }) => ({ ...event, at: new Date(atMs) }))
      session.out.show({ events: document }, () => historyTable(events, session.out))
    }),
  )
}

/** Supervisors keep what is theirs on the default connection. */
export function notesOf({ connections }: Session) {
  const store = connections['default']
  if (store === undefined) throw new CliError('NOT_FOUND', 'there is no default connection')
  return store.notes
}

function historyTable(events: readonly ScaleEvent[], out: Output): string {
  if (events.length === 0) return 'the autoscaler has not changed anything in the last 30 days\n'
  return out.table<ScaleEvent>(
    [
      { title: 'WHEN', of: ({ atMs }) => out.time(atMs) },
      { title: 'POOL', of: ({ pool }) => pool },
      { title: 'QUEUE', of: ({ queue }) => queue ?? '-' },
      {
        title: 'STEP',
        of: ({ from, to }) => `${from} → ${to}`,
        style: ({ action }) => (action === 'up' ? 'green' : 'yellow'),
      },
      { title: 'BY', of: ({ forcedBy }) => forcedBy ?? 'autoscaler' },
      { title: 'WHY', of: ({ reasons }) => reasons.join('; '), flex: true },
    ],
    events,
  )
}
