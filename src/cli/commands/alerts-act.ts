// `millrace alerts ack`, `silence` and `unsilence`.
import type { Command } from 'commander'
import { createAlertNotes } from '../../alerts/alert-notes.ts'
import type { AlertNotes } from '../../alerts/alert-notes.ts'
import { checkAlerts, checkMatch, checkSilenceReason } from '../../alerts/options.ts'
import { acknowledge } from '../../core/alerting.ts'
import type { Acknowledgement, AlertState } from '../../core/alerting.ts'
import { DIRECT_RULES } from '../../core/alert-rules.ts'
import type { Silence } from '../../core/alert-silence.ts'
import { parseDuration } from '../../core/duration.ts'
import type { Duration } from '../../core/duration.ts'
import { MillraceError } from '../../core/errors.ts'
import { LIMITS } from '../../core/limits.ts'
import { checkKey, checkName } from '../../core/names.ts'
import { createIdSource } from '../../runtime/runtime.ts'
import { alertPlanOf } from '../alert-plan.ts'
import { silenceDocument, silenceTable } from '../alert-text.ts'
import { CliError } from '../cli-error.ts'
import { runs, teach } from '../command.ts'
import type { Cli } from '../command.ts'
import { withMill } from '../session.ts'
import type { Session } from '../session.ts'
import { counted } from '../text.ts'

const TRIES_MAX = 5
const NOT_KEPT =
  'is about the store itself: each supervisor keeps it in its memory, and nobody can acknowledge it there. Silence it instead'
const ALL = 'all'

export function addAck(alerts: Command, cli: Cli): void {
  const command = alerts
    .command('ack')
    .argument('<alert>', 'its key, as alerts ls shows it')
    .summary('say that somebody looks after it')
    .description(
      'Acknowledges an alert that fires: no more reminders, and sinks that know such a thing are told. It is over when it is over.',
    )
    .option('--note <text>', 'for the others')
    .option('--by <name>', 'who; default: the user of this machine')
  teach(command, { examples: [['alerts ack depth:mail --note "on it"', 'no more reminders']], exits: ['notFound'] })
  runs<{ readonly note?: string; readonly by?: string }>(cli, command, (flags, [key = '']) =>
    withMill(cli.parts, flags, async (session) => {
      const by = checkKey(flags.by ?? userOf(cli), '--by')
      const note = flags.note === undefined ? null : checkSilenceReason(flags.note, '--note')
      const notes = createAlertNotes(session.reads.notes())
      const state = await ack(notes, key, { by, note, atMs: await nowOf(session, cli) })
      const who = state.ack?.by ?? by
      session.out.show({ alert: key, acknowledged: state.ack }, () => `${key} is acknowledged by ${who}\n`)
    }),
  )
}

async function ack(notes: AlertNotes, key: string, given: Acknowledgement): Promise<AlertState> {
  for (let no = 0; no < TRIES_MAX; no++) {
    const entry = await notes.state(key)
    const state = entry?.state ?? null
    if (entry === null || state?.phase !== 'firing') {
      if (DIRECT_RULES.has(key.split(':', 1)[0] ?? '')) throw new CliError('NOT_FOUND', `${key} ${NOT_KEPT}`)
      throw new CliError('NOT_FOUND', `no alert ${key} fires: millrace alerts ls lists those that do`)
    }
    if (state.ack !== null) return state
    const after = acknowledge(state, given)
    if ((await notes.write(after, entry.version)) !== null) return after
  }
  throw new MillraceError('NOTE_CONFLICT', `the alert ${key} was changed by others at the same time: try again`)
}

interface SilenceFlags {
  readonly for: Duration
  readonly reason: string
  readonly queue?: string
  readonly by?: string
}

export function addSilence(alerts: Command, cli: Cli): void {
  const command = alerts
    .command('silence')
    .argument('<what>', 'a rule, the key of an alert, or all')
    .summary('tell nobody of it for a while')
    .description(
      'For a while nobody is told of new alerts of a rule, of one thing or of a queue. They are recorded, and told if they still fire when the silence ends. What somebody was told of before, he is told the end of.',
    )
    .requiredOption('--for <time>', 'how long: 30m, 2h, 7d')
    .requiredOption('--reason <text>', 'for whoever wonders later')
    .option('-q, --queue <name>', 'of this queue only')
    .option('--by <name>', 'who; default: the user of this machine')
  teach(command, {
    examples: [
      ['alerts silence depth:mail --for 2h --reason "bulk load"', 'one alert'],
      ['alerts silence all --queue import --for 1d --reason migration', 'everything about a queue'],
    ],
  })
  runs<SilenceFlags>(cli, command, (flags, [what = '']) => {
    const lastsMs = parseDuration(flags.for, '--for', { minMs: 1_000, maxMs: LIMITS.silenceMaxMs })
    const reason = checkSilenceReason(flags.reason, '--reason')
    const queue = flags.queue === undefined ? null : checkName(flags.queue, 'queue')
    const by = checkKey(flags.by ?? userOf(cli), '--by')
    return withMill(cli.parts, flags, async (session) => {
      const match =
        what === ALL ? null : checkMatch(what, (alertPlanOf(session.settings) ?? checkAlerts()).rules, '<what>')
      const notes = createAlertNotes(session.reads.notes())
      if ((await notes.silences()).length >= LIMITS.silencesMax) {
        throw new CliError('UNMET', `there are ${LIMITS.silencesMax} silences: end some with millrace alerts unsilence`)
      }
      const createdAtMs = await nowOf(session, cli)
      const id = `s-${createIdSource(cli.parts.clock)().slice(-8)}`
      const silence: Silence = { id, match, queue, untilMs: createdAtMs + lastsMs, reason, by, createdAtMs }
      await notes.addSilence(silence, lastsMs)
      session.out.show({ silence: silenceDocument(silence) }, () => silenceTable([silence], session.out))
    })
  })
}

export function addUnsilence(alerts: Command, cli: Cli): void {
  const command = alerts
    .command('unsilence')
    .argument('<silence>', 'its id, or the rule or alert it is of')
    .summary('end a silence')
    .description('Ends a silence, or all that are of a rule or alert. What still fires is told at the next look.')
  teach(command, { examples: [['alerts unsilence depth:mail', 'tell me again']], exits: ['notFound'] })
  runs(cli, command, (flags, [what = '']) =>
    withMill(cli.parts, flags, async ({ reads, out }) => {
      const notes = createAlertNotes(reads.notes())
      const own = (await notes.silences()).filter(({ id, match }) => id === what || (match ?? ALL) === what)
      if (own.length === 0) {
        throw new CliError('NOT_FOUND', `there is no silence ${what}: millrace alerts ls lists all of them`)
      }
      for (const { id } of own) await notes.removeSilence(id)
      out.show({ ended: own.map(silenceDocument) }, () => `${counted(own.length, 'silence')} ended\n`)
    }),
  )
}

/** The time of the store, which is what silences end by. */
async function nowOf({ reads }: Session, cli: Cli): Promise<number> {
  return (await reads.clock())?.nowMs ?? cli.parts.clock.nowMs()
}

function userOf({ parts }: Cli): string {
  return parts.io.env['USER'] || parts.io.env['LOGNAME'] || 'somebody'
}
