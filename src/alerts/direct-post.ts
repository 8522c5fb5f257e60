// Notices that cannot go through the store, because it is the store that is gone: sent from here, in order for each sink,
// tried again for about ten minutes. Kept in memory alone; what is not delivered by then is in the log.
import type { Notice } from '../core/alerting.ts'
import { isMillraceError } from '../core/errors.ts'
import { sleep } from '../runtime/clock.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { Post } from './post.ts'

/** Before each further try. */
const WAITS_MS = [2_000, 10_000, 30_000, 60_000, 120_000, 300_000] as const
const WAITING_MAX = 100

export interface DirectPost {
  send(sink: string, notice: Notice): void
  /** Gives up what is not sent yet. */
  stop(): Promise<void>
}

export function createDirectPost(post: Post, { clock, logger }: Runtime): DirectPost {
  const stopping = new AbortController()
  const lines = new Map<string, Promise<void>>()
  let waiting = 0

  async function deliver(sink: string, notice: Notice): Promise<void> {
    const { incident, kind, text } = notice
    for (let no = 0; !stopping.signal.aborted; no++) {
      try {
        await post.try(sink, notice)
        return
      } catch (error) {
        const waitMs = isMillraceError(error) && !error.retryable ? undefined : WAITS_MS[no]
        const why = error instanceof Error ? error.message : String(error)
        if (waitMs === undefined) {
          logger.error({ sink, incident, kind, text, error: why }, 'a notice was not delivered, and is given up')
          return
        }
        logger.warn({ sink, incident, kind, waitMs, error: why }, 'a notice was not delivered and will be tried again')
        await sleep(clock, waitMs, stopping.signal)
      }
    }
    logger.warn({ sink, incident, kind, text }, 'a notice was not delivered: this process stops')
  }

  return {
    send(sink, notice) {
      if (waiting >= WAITING_MAX) {
        logger.error(
          { sink, incident: notice.incident, text: notice.text },
          'too many notices wait: this one is dropped',
        )
        return
      }
      waiting += 1
      const line = (lines.get(sink) ?? Promise.resolve())
        .then(() => deliver(sink, notice))
        .finally(() => void (waiting -= 1))
      lines.set(sink, line)
    },
    async stop() {
      stopping.abort()
      await Promise.allSettled(lines.values())
    },
  }
}
