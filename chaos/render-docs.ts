// docs/reliability.md from the results of a run: a pure function, so that a test can compare the page with its data.
import { tableOf } from '../bench/page/markdown.ts'
import type { Cell } from './cell.ts'
import type { Described, Method } from './method.ts'
import { promisedText } from './promise.ts'
import { playedSeconds } from './report.ts'
import type { ChaosReport } from './report.ts'
import { OURS } from './systems/catalogue.ts'
import { factsOf, numberOf, percent } from './table.ts'

export const DATA = 'docs/data/chaos.json'
export const PAGE = 'docs/reliability.md'

export function renderReliability(report: ChaosReport): string {
  const { cells, machine, node, versions, settings, date, pace, method } = report
  const ours = cells.filter(({ system }) => system === OURS)
  const held = ours.filter(({ ok }) => ok).length
  const { scenarios } = method
  const asked = scenarios.flatMap(({ name, peers }) => (peers === 'asked' ? [name] : []))
  const never = scenarios.flatMap(({ name, peers }) => (peers === 'never' ? [name] : []))
  const partly = scenarios.flatMap(({ name, usually }) =>
    usually === undefined ? [] : [`${name} (only ${usually.join(', ')})`],
  )
  const installed = Object.entries(versions).map(([name, version]) => `${name} ${version}`)
  return `<!-- Generated from ${DATA} by \`npm run chaos:docs\`. Do not edit. -->

# Reliability, measured

Real worker and producer processes, real PostgreSQL and Redis, one fault after the other, and books that are kept outside every store. Of the ${ours.length} cells of Millrace ${held} were as
promised; what was not is in the list with its reason. What is promised is in the [delivery contract](delivery-contract.md), why it holds in the [reliability model](reliability-model.md).

Played on ${date}${when(report)}, ${machine.cores} × ${machine.cpu}, ${machine.memoryGiB} GiB, ${machine.os}, Node ${node}; ${installed.join(', ')}. Phases of ${method.phaseSeconds} s, ttl ${method.ttlSeconds} s
where a scenario does not ask for defaults (\`${pace}\`). To play it again: \`npm run chaos -- --json FILE\`, then \`npm run chaos:docs -- FILE\`.

## How it is played

${method.text.join('\n\n')}

Without \`--full\`, \`--only\` and \`--scenario\` a peer plays a scenario on one backend only. It then plays no part in ${asked.join(', ')}, and ${partly.join(', ')}
only by the one in brackets. No peer plays ${never.join(', ')}: they are about what only Millrace has or states.

| column | means |
|---|---|
| jobs | enqueues that were acknowledged |
| refused | enqueues that failed; their callers were told so |
| lost | acknowledged, not completed, and no longer known to the system, although its contract does not give it up |
| given up | the same of jobs that the contract gives up under this fault, job by job: asked for before the store was back, and not among those that it still had or must have had. Peers are given the contract of Millrace on the same store |
| stuck | acknowledged, not completed, and still in the system when the drain was given up |
| stale | a result was applied although another run had taken the place (– : the system keeps no record that shows it) |
| again | started again because their worker had died, was away for longer than its ttl, or the store itself forgot it: allowed by at least once |
| twice | started again although their worker was alive and in contact |
| recovery | seconds to the last restart of an interrupted run; where none was interrupted, to the first start of a job that was made after the fault (– : nothing stops in this scenario; not seen: not while anybody looked) |
| rate | jobs per second from the fault to the end of the load, by those before it |
| steady | seconds from when the store was back until the promised share of the offered rate was reached and held to the end of the load (– : not looked at; not seen: not before the end of the load) |
| promised | of Millrace in this cell: recovery at most, rate at least, steady at the latest, beside what holds in every cell: nothing lost, stuck, stale or twice, nothing amiss in what is counted above. Peers have promised nothing |

### What is smaller here than it may be in production

${method.scaled.map((line) => `- ${line}.`).join('\n')}

## What was seen

${sections(report)}

## Where Millrace is not the best

${worse(cells)}

## How each system was set up

${Object.entries(settings)
  .map(([name, text]) => `- **${name}**: ${text}${noteOn(name, method)}`)
  .join('\n')}
`
}

/** From when to when, and whether that was in one go. */
function when(report: ChaosReport): string {
  const { startedAt, endedAt, pausesSeconds = [] } = report
  const seconds = playedSeconds(report)
  if (startedAt === undefined || endedAt === undefined || seconds === undefined) return ''
  const span = `, from ${minuteOf(startedAt)} to ${minuteOf(endedAt)} UTC`
  const playedS = `${Math.round(seconds / 60)} minutes`
  if (pausesSeconds.length === 0) return `${span} (${playedS})`
  const pausedS = pausesSeconds.reduce((sum, pause) => sum + pause, 0)
  const times = pausesSeconds.length === 1 ? 'once' : `${pausesSeconds.length} times`
  return `${span} (${playedS} of playing; cut short and gone on with ${times}, ${Math.round(pausedS / 60)} minutes lay between)`
}

/** `2026-01-02 03:04` */
function minuteOf(moment: string): string {
  return moment.slice(0, 16).replace('T', ' ')
}

/** Why a peer is set up like that, with its sources. */
function noteOn(name: string, { peerNotes }: Method): string {
  const note = peerNotes[name]
  if (note === undefined) return ''
  return `. ${note.text} (${note.sources.map((url) => `<${url}>`).join(', ')})`
}

const HEAD = [
  'system',
  'jobs',
  'refused',
  'lost',
  'given up',
  'stuck',
  'stale',
  'again',
  'twice',
  'recovery',
  'rate',
  'steady',
  'promised',
  'as promised',
]

function sections({ cells, method }: ChaosReport): string {
  return method.scenarios
    .flatMap((described) => {
      const { name, says } = described
      const own = cells.filter(({ scenario }) => scenario === name)
      if (own.length === 0) return []
      const rows = own.map((cell) => wordsOf(cell, described))
      return [`### ${name}\n\n${says[0]!.toUpperCase()}${says.slice(1)}.\n\n${tableOf(HEAD, rows)}`]
    })
    .join('\n\n')
}

function wordsOf(cell: Cell, { goesOn, hasSteady }: Described): readonly string[] {
  const { ok, system } = cell
  const facts = factsOf(cell)
  const verdict = system === OURS || !ok ? (ok ? 'yes' : 'no') : 'nothing amiss'
  return [
    `${system} on ${cell.backend}`,
    String(cell.enqueued),
    String(cell.refused),
    String(cell.lost),
    String(cell.givenUp),
    String(cell.stuck),
    numberOf(cell.stale, 0),
    String(cell.duplicatesAllowed),
    String(cell.duplicated - cell.duplicatesAllowed),
    secondsOf(cell.recoverySeconds, !goesOn),
    percent(cell.throughputRatio),
    secondsOf(cell.steadySeconds, hasSteady),
    promisedText(cell.promised),
    facts === '' ? verdict : `${verdict}: ${facts}`,
  ]
}

function secondsOf(seconds: number | null, isAwaited: boolean): string {
  if (seconds === null) return isAwaited ? 'not seen' : '–'
  return `${numberOf(seconds, 1)} s`
}

/** Seconds less than these are noise of the machine. */
const NOTICEABLE_S = 1

/** Scenarios in which a peer on the same store came back sooner with nothing lost, and cells that were not as promised. */
function worse(cells: readonly Cell[]): string {
  const hasPeers = cells.some(({ system }) => system !== OURS)
  const lines = cells
    .filter(({ system }) => system === OURS)
    .flatMap((cell) => {
      const { scenario, backend, recoverySeconds } = cell
      const broken = cell.ok ? [] : [`- ${scenario} on ${backend}: ${cell.note}.`]
      const sooner = cells.filter(
        (peer) =>
          peer.system !== OURS &&
          peer.scenario === scenario &&
          peer.backend === backend &&
          peer.ok &&
          (peer.recoverySeconds ?? Infinity) + NOTICEABLE_S < (recoverySeconds ?? 0),
      )
      const beaten = sooner.map(
        (peer) =>
          `- ${scenario} on ${backend}: ${peer.system} came back after ${numberOf(peer.recoverySeconds, 1)} s, Millrace after ${numberOf(recoverySeconds, 1)} s.`,
      )
      return [...broken, ...beaten]
    })
  if (!hasPeers) lines.push('No peer has been played: nothing can be said of them.')
  return lines.length === 0
    ? 'In no cell of this run did a peer on the same store come back noticeably sooner with nothing lost or run twice.'
    : lines.join('\n')
}
