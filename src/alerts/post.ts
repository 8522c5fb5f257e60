// The sinks of this process, by name, and one notice sent to one of them: with a second try right away, since most failures
// of a network are over in a second and the next try of a job is minutes away.
import { isMillraceError, MillraceError } from '../core/errors.ts'
import type { Notice } from '../core/alerting.ts'
import { sleep } from '../runtime/clock.ts'
import { unknownSink } from './options.ts'
import type { AlertPlan } from './options.ts'
import type { SinkParts } from './sink-options.ts'
import type { SentNotice, Sink } from './sinks/sink.ts'

const SECOND_TRY_MS = 1_000

export interface Post {
  /** Answers what the other side said. */
  send(sink: string, notice: Notice): Promise<string>
  /** Once, whatever comes of it. */
  try(sink: string, notice: Notice): Promise<string>
}

export function createPost(plan: AlertPlan, parts: SinkParts): Post {
  const sinks = new Map<string, Sink>([...plan.sinks].map(([name, make]) => [name, make(parts)]))
  const { clock } = parts.runtime

  async function once(name: string, notice: Notice): Promise<string> {
    const sink = sinks.get(name)
    if (sink === undefined) throw new MillraceError('NOTICE_REFUSED', unknownSink(name, plan))
    return await sink.send(sentNotice(plan.system, notice))
  }

  return {
    try: once,
    async send(name, notice) {
      try {
        return await once(name, notice)
      } catch (error) {
        if (!isMillraceError(error, 'NOTICE_NOT_DELIVERED') || error.details['retryAfterMs'] !== undefined) throw error
        await sleep(clock, SECOND_TRY_MS)
        return await once(name, notice)
      }
    },
  }
}

export function sentNotice(system: string, notice: Notice): SentNotice {
  return { ...notice, system, dedupeKey: `${notice.incident}#${notice.no}` }
}
