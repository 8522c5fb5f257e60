// docs/alert-rules.md, from the definitions of the rules.
import { ALERT_RULES } from '../src/core/alert-rules.ts'
import type { LimitKind, RuleKind } from '../src/core/alert-rules.ts'
import { formatDuration } from '../src/core/duration.ts'
import { DEFAULTS } from '../src/core/limits.ts'

export function renderAlertRules(): string {
  const rules: [string, RuleKind][] = Object.entries(ALERT_RULES)
  const rows = rules.map(([name, rule]) => {
    const cells = [`[\`${name}\`](#${name})`, rule.severity, limitsOf(rule), waits(rule.forMs), waits(rule.recoverMs)]
    return `| ${cells.join(' | ')} |`
  })
  const sections = rules.map(([name, rule]) => sectionOf(name, rule))
  return `<!-- Generated from src/core/alert-rules.ts by \`npm run generate\`. Do not edit. -->

# Alert rules

Every rule, with the limits it has unless your configuration says otherwise, what it means when it fires, and what to do about it
at three in the morning. How they are configured, and who is told: [alerts](alerts.md). A rule fires above its limit, after the time under *for*; it is over
at ${DEFAULTS.alertRecoverShare * 100} % of its limit or less, after the time under *recover*. \`millrace alerts rules\` shows what is in force.

| rule | severity | fires above | for | recover |
|---|---|---|---|---|
${rows.join('\n')}

${sections.join('\n\n')}
`
}

function sectionOf(name: string, { about, means, todo, limits }: RuleKind): string {
  const options = Object.entries(limits).map(([limit, one]) => `- \`${limit}\`: ${one.says}; ${usualOf(one)}.`)
  const lines = [`## ${name}`, '', `About a ${about}. ${means}`, '', `**What to do.** ${todo}`]
  return [...lines, ...(options.length === 0 ? [] : ['', ...options])].join('\n')
}

function limitsOf({ limits }: RuleKind): string {
  const set = Object.values(limits).filter(({ usual }) => usual !== null)
  return set.map((one) => `${valueOf(one)} ${one.says}`).join('; ') || '(it is so or not)'
}

function usualOf(limit: LimitKind): string {
  return limit.usual === null ? 'not looked at unless you say so' : `default ${valueOf(limit)}`
}

function valueOf({ unit, usual }: LimitKind): string {
  if (usual === null) return ''
  if (unit === 'duration') return formatDuration(usual)
  return unit === 'share' ? `${usual * 100} %` : String(usual)
}

function waits(ms: number): string {
  return ms === 0 ? 'at once' : formatDuration(ms)
}
