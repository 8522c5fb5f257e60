// `millrace alerts rules` and `test`: what is in force, and whether a sink can be reached.
import type { Command } from 'commander'
import { unknownSink } from '../../alerts/options.ts'
import type { AlertPlan } from '../../alerts/options.ts'
import { createPost } from '../../alerts/post.ts'
import type { Notice, NoticeKind, Rule } from '../../core/alerting.ts'
import { ALERT_RULES } from '../../core/alert-rules.ts'
import type { LimitUnit, RuleKind, RuleTerms } from '../../core/alert-rules.ts'
import { formatDuration } from '../../core/duration.ts'
import { createRuntime } from '../../runtime/runtime.ts'
import { ALERTS_OFF, alertPlanOf } from '../alert-plan.ts'
import { CliError } from '../cli-error.ts'
import { runs, teach } from '../command.ts'
import type { Cli } from '../command.ts'
import { createLogLines } from '../log-lines.ts'
import type { Output } from '../output.ts'
import { outputOf } from '../session.ts'
import { readSettings } from '../settings.ts'
import type { GlobalFlags } from '../settings.ts'

export function addRules(alerts: Command, cli: Cli): void {
  const command = alerts
    .command('rules')
    .summary('show the rules in force')
    .description('Shows every rule with the limits that are in force, and what single queues have otherwise.')
  teach(command, { examples: [['alerts rules', 'when does it fire']] })
  runs(cli, command, async (flags) => {
    const out = outputOf(cli.parts, flags)
    const plan = await planOf(cli, flags)
    if (plan === null) {
      out.show({ rules: [], routes: {} }, () => `${ALERTS_OFF}\n`)
      return
    }
    const rows = plan.rules.flatMap(rowsOf)
    out.show({ rules: rows, routes: plan.routes }, () => rulesText(rows, plan.routes, out))
  })
}

async function planOf(cli: Cli, flags: GlobalFlags): Promise<AlertPlan | null> {
  const { io, load } = cli.parts
  const settings = await readSettings(io, flags, { embedded: true }, load)
  return alertPlanOf(settings)
}

interface RuleRow {
  readonly rule: string
  /** The queue, kind or schedule that has these terms; null: all others. */
  readonly only: string | null
  readonly terms: RuleTerms | null
}

function rowsOf(rule: Rule): readonly RuleRow[] {
  const own = [...(rule.own ?? [])].map(([only, terms]) => ({ rule: rule.name, only, terms }))
  // No name is empty: this is what everything else has.
  return [{ rule: rule.name, only: null, terms: rule.termsOf('') }, ...own]
}

function rulesText(rows: readonly RuleRow[], routes: AlertPlan['routes'], out: Output): string {
  const table = out.table<RuleRow>(
    [
      { title: 'RULE', of: ({ rule, only }) => (only === null ? rule : `  ${rule} of ${only}`) },
      { title: 'SEVERITY', of: ({ terms }) => terms?.severity ?? 'off' },
      { title: 'FOR', of: ({ terms }) => (terms === null ? '-' : formatDuration(terms.forMs)) },
      { title: 'RECOVER', of: ({ terms }) => (terms === null ? '-' : formatDuration(terms.recoverMs)) },
      { title: 'REMIND', of: ({ terms }) => (terms?.remindMs ? formatDuration(terms.remindMs) : '-') },
      { title: 'LIMITS', of: limitsOf, flex: true },
    ],
    rows,
  )
  const to = Object.entries(routes).map(([severity, names]) => `${severity} goes to ${names.join(', ') || 'nobody'}`)
  return `${table}\n${to.join('\n')}\n`
}

function limitsOf({ rule, terms }: RuleRow): string {
  const kind: RuleKind | undefined = Object.hasOwn(ALERT_RULES, rule)
    ? ALERT_RULES[rule as keyof typeof ALERT_RULES]
    : undefined
  const shown = Object.entries(terms?.limits ?? {}).flatMap(([name, value]) =>
    value === null ? [] : [`${name} ${limitText(value, kind?.limits[name]?.unit ?? 'count')}`],
  )
  return shown.join(', ') || '-'
}

export function limitText(value: number, unit: LimitUnit): string {
  if (unit === 'duration') return formatDuration(value)
  return unit === 'share' ? `${Math.round(value * 100)} %` : String(value)
}

export function addTest(alerts: Command, cli: Cli): void {
  const command = alerts
    .command('test')
    .argument('<sink>', 'its name in the configuration')
    .summary('send a test notice')
    .description(
      'Sends a test notice to a sink, and that it is over, from here and at once, and shows what the other side answered. Needs your configuration.',
    )
  teach(command, { examples: [['alerts test pager', 'does it arrive']], exits: ['notFound'] })
  runs(cli, command, async (flags, [sink = '']) => {
    const out = outputOf(cli.parts, flags)
    const plan = await planOf(cli, flags)
    if (plan === null) throw new CliError('NOT_FOUND', ALERTS_OFF)
    if (!plan.sinks.has(sink)) throw new CliError('NOT_FOUND', unknownSink(sink, plan))
    const { io, clock } = cli.parts
    const logger = createLogLines(io, { json: out.json, level: 'info', clock })
    const post = createPost(plan, { runtime: createRuntime({ clock, logger }) })
    const startedAtMs = clock.nowMs()
    const firing = await post.try(sink, testNotice('firing', startedAtMs, 1))
    const recovered = await post.try(sink, testNotice('recovered', startedAtMs, 2))
    out.show({ sink, delivered: true, replies: { firing, recovered } }, () => {
      return `${sink}: a test notice was delivered: ${firing}\n${sink}: and that it is over: ${recovered}\n`
    })
  })
}

function testNotice(kind: NoticeKind, startedAtMs: number, no: number): Notice {
  return {
    kind,
    key: 'test:millrace',
    incident: `test:millrace@${startedAtMs}`,
    no,
    quiet: false,
    rule: 'test',
    connection: 'default',
    name: 'millrace',
    queue: null,
    severity: 'info',
    text: 'this is a test, sent by millrace alerts test; nothing is wrong',
    value: 0,
    limit: 0,
    startedAtMs,
    atMs: startedAtMs,
    note: null,
  }
}
