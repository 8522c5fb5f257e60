// Silences, for people and for scripts.
import type { Silence } from '../core/alert-silence.ts'
import type { Output } from './output.ts'

export function silenceDocument({ id, match, queue, untilMs, reason, by }: Silence) {
  return { id, match, queue, until: untilMs === null ? null : new Date(untilMs), reason, by }
}

export function silenceTable(silences: readonly Silence[], out: Output): string {
  return out.table<Silence>(
    [
      { title: 'SILENCE', of: ({ id }) => id },
      { title: 'OF', of: ({ match, queue }) => `${match ?? 'all'}${queue === null ? '' : ` in ${queue}`}` },
      { title: 'UNTIL', of: ({ untilMs }) => (untilMs === null ? 'the configuration changes' : out.time(untilMs)) },
      { title: 'BY', of: ({ by }) => by },
      { title: 'REASON', of: ({ reason }) => reason, flex: true },
    ],
    silences,
  )
}
