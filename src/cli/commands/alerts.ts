// `millrace alerts`: what fires, who knows of it, and what happened. The rest of the group: alerts-act.ts, alerts-rules.ts.
import type { Command } from 'commander'
import { createAlertNotes } from '../../alerts/alert-notes.ts'
import type { AlertLogEntry } from '../../alerts/alert-notes.ts'
import type { AlertState } from '../../core/alerting.ts'
import { silenceOf } from '../../core/alert-silence.ts'
import type { Silence } from '../../core/alert-silence.ts'
import { parseDuration } from '../../core/duration.ts'
import type { Duration } from '../../core/duration.ts'
import { ALERTS_OFF, alertPlanOf } from '../alert-plan.ts'
import { silenceDocument, silenceTable } from '../alert-text.ts'
import { runs, teach } from '../command.ts'
import type { Cli } from '../command.ts'
import { EXIT } from '../exit-codes.ts'
import type { Output } from '../output.ts'
import { withMill } from '../session.ts'
import type { Session } from '../session.ts'
import { counted } from '../text.ts'
import { addAck, addSilence, addUnsilence } from './alerts-act.ts'
import { addRules, addTest } from './alerts-rules.ts'

export function addAlerts(program: Command, cli: Cli): void {
  const alerts = program
    .command('alerts')
    .summary('what fires; acknowledge, silence, try a sink')
    .description(
      'Shows the alerts that fire, acknowledges and silences them, shows the rules that are in force, and tries a sink. Alerts are looked for by millrace supervise.',
    )
  teach(alerts, {
    examples: [
      ['alerts ls', 'what fires'],
      ['alerts ack depth:mail --note "on it"', 'no more reminders'],
      ['alerts silence depth --queue import --for 2h --reason "bulk load"', 'nobody is told of it'],
      ['alerts test pager', 'does it arrive'],
    ],
  })
  addList(alerts, cli)
  addAck(alerts, cli)
  addSilence(alerts, cli)
  addUnsilence(alerts, cli)
  addRules(alerts, cli)
  addTest(alerts, cli)
}

const LOG_SHOWN = 200

interface ListFlags {
  readonly all?: boolean
  readonly since?: Duration
}

function addList(alerts: Command, cli: Cli): void {
  const command = alerts
    .command('ls')
    .summary('list what fires')
    .description(
      'Lists the alerts that fire, with who acknowledged them, and the silences in force. Ends with 4 when a critical one fires that is neither acknowledged nor silenced.',
    )
    .option('-a, --all', 'also those that wait to fire, and what happened')
    .option('--since <time>', 'how far back --all goes; default 1d')
  teach(command, {
    examples: [
      ['alerts ls', 'what fires now'],
      ['alerts ls --all --since 7d', 'and what happened this week'],
    ],
    exits: ['unmet'],
  })
  runs<ListFlags>(cli, command, (flags) => {
    const sinceMs = parseDuration(flags.since ?? '1d', '--since')
    return withMill(cli.parts, flags, (session) => list(session, cli, flags.all ?? false, sinceMs))
  })
}

async function list({ reads, out, settings }: Session, cli: Cli, all: boolean, sinceMs: number): Promise<number> {
  const plan = alertPlanOf(settings)
  const notes = createAlertNotes(reads.notes())
  const clock = await reads.clock()
  const nowMs = clock?.nowMs ?? cli.parts.clock.nowMs()
  const [entries, sights, stored, log] = await Promise.all([
    notes.states(),
    notes.sights(),
    notes.silences(),
    all ? notes.log(nowMs - sinceMs, LOG_SHOWN) : [],
  ])
  const silences = [...(plan?.silences ?? []), ...stored].filter(({ untilMs }) => untilMs === null || untilMs > nowMs)
  const decided = [...entries.values()].flatMap(({ state }) => (state === null ? [] : [{ state, host: null }]))
  const shown = [...decided, ...sights]
    .filter(({ state: { phase } }) => phase === 'firing' || (all && phase === 'pending'))
    .map(({ state, host }) => ({ state, host, silence: silenceOf(silences, state, nowMs) }))
    .sort((a, b) => rank(a.state) - rank(b.state) || (a.state.key < b.state.key ? -1 : 1))
  const document = {
    alerts: shown.map(documentOf),
    silences: silences.map(silenceDocument),
    ...(all && { log: log.map(({ atMs, ...entry }) => ({ at: new Date(atMs), ...entry })) }),
  }
  const off = plan === null ? `${ALERTS_OFF}\n` : ''
  out.show(document, () => `${off}${listText(shown, silences, all ? log : null, out)}`)
  const isPaging = shown.some(
    ({ state, silence }) =>
      state.phase === 'firing' && state.severity === 'critical' && state.ack === null && silence === null,
  )
  return isPaging ? EXIT.unmet : EXIT.done
}

const SEVERITY_RANK = { critical: 0, warning: 1, info: 2 } as const

function rank({ phase, severity }: AlertState): number {
  return (phase === 'firing' ? 0 : 10) + SEVERITY_RANK[severity]
}

/** What scripts read: times as times, and no bookkeeping. */
function documentOf({ state, host, silence }: Shown) {
  const { key, rule, connection, name, queue, severity, phase, value, limit, text, ack } = state
  return {
    key,
    rule,
    connection,
    name,
    queue,
    severity,
    phase,
    value,
    limit,
    text,
    startedAt: new Date(state.startedAtMs),
    firedAt: state.firedAtMs === null ? null : new Date(state.firedAtMs),
    told: state.told,
    acknowledged: ack === null ? null : { by: ack.by, at: new Date(ack.atMs), note: ack.note },
    silence: silence?.id ?? null,
    host,
  }
}

interface Shown {
  readonly state: AlertState
  /** The supervisor that sees it by itself; null: the leader found it. */
  readonly host: string | null
  readonly silence: Silence | null
}

function listText(
  shown: readonly Shown[],
  silences: readonly Silence[],
  log: readonly AlertLogEntry[] | null,
  out: Output,
): string {
  const parts = [shown.length === 0 ? 'nothing fires\n' : alertTable(shown, out)]
  if (silences.length > 0) parts.push(`${counted(silences.length, 'silence')}\n${silenceTable(silences, out)}`)
  if (log !== null) parts.push(log.length === 0 ? 'nothing happened\n' : logTable(log, out))
  return parts.join('\n')
}

function alertTable(shown: readonly Shown[], out: Output): string {
  return out.table<Shown>(
    [
      { title: 'ALERT', of: ({ state }) => state.key },
      {
        title: 'SEVERITY',
        of: ({ state }) => state.severity,
        style: ({ state }) => (state.severity === 'critical' ? 'red' : 'yellow'),
      },
      {
        title: 'STATE',
        of: ({ state, silence }) =>
          state.ack !== null ? 'acknowledged' : silence !== null ? `silenced ${silence.id}` : state.phase,
      },
      { title: 'SINCE', of: ({ state }) => out.time(state.startedAtMs) },
      { title: 'WHAT', of: ({ state }) => state.text, flex: true },
    ],
    shown,
  )
}

function logTable(log: readonly AlertLogEntry[], out: Output): string {
  return out.table<AlertLogEntry>(
    [
      { title: 'AT', of: ({ atMs }) => out.time(atMs) },
      { title: 'ALERT', of: ({ key }) => key },
      { title: 'SEVERITY', of: ({ severity }) => severity },
      { title: 'HAPPENED', of: happened },
      { title: 'WHAT', of: ({ text, note }) => (note === null ? text : `${text} (${note})`), flex: true },
    ],
    log,
  )
}

function happened({ kind, quiet, undelivered }: AlertLogEntry): string {
  if (undelivered !== undefined) return `${kind}, not delivered to ${undelivered.sink}: ${undelivered.error}`
  return quiet ? `${kind}, not told` : kind
}
