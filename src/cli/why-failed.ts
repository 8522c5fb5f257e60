// Why a job failed for good, and what to try. The class of the error says whether a replay alone can help.
import { isPermanent } from '../core/classify.ts'
import { formatDuration } from '../core/duration.ts'
import { ERROR_CATALOGUE } from '../core/errors.ts'
import type { ErrorCode } from '../core/errors.ts'
import { errorOf } from './job-text.ts'
import { counted } from './text.ts'
import type { Reason, WhyFacts } from './why-facts.ts'

export function failureReasons({ job, nowMs, attempts }: WhyFacts): readonly Reason[] {
  const ago =
    job.finishedAt === null
      ? ''
      : ` ${formatDuration(Math.round((nowMs - job.finishedAt.getTime()) / 1_000) * 1_000)} ago`
  const runs = counted(job.attemptCount, 'attempt')
  const usedUp = job.attemptCount >= job.maxAttempts
  const how = usedUp ? `all ${runs} are used up` : `after ${runs} of ${job.maxAttempts}, ${cutShort(job.lastError)}`
  const reasons: Reason[] = [
    { code: 'failed', says: `it failed${ago}, ${how}: ${errorOf(job)}`, fix: fixOf(job.id, job.lastError) },
  ]
  if (job.crashCount > 0) {
    const says = `it ended the life of its worker ${counted(job.crashCount, 'time')}`
    reasons.push({ code: 'crashes', says, fix: ERROR_CATALOGUE.POISON.fix })
  }
  const errors = new Set(attempts.flatMap(({ error }) => (error === null ? [] : [`${error.name}: ${error.message}`])))
  if (errors.size > 1)
    reasons.push({ code: 'different-errors', says: `its attempts failed with ${errors.size} different errors` })
  if (job.replayedInto !== null) {
    reasons.push({
      code: 'replayed',
      says: `it was replayed as ${job.replayedInto}`,
      fix: `millrace why ${job.replayedInto}`,
    })
  }
  return reasons
}

/** Why not all its attempts were made. */
function cutShort(error: WhyFacts['job']['lastError']): string {
  const isFinal = error === null || isPermanent(error.class)
  return isFinal ? 'because its error is permanent' : 'because its retry policy or its worker allows no more'
}

function fixOf(id: string, error: WhyFacts['job']['lastError']): string {
  const replay = `millrace dead replay ${id}`
  if (error === null) return replay
  const known = error.code !== undefined && Object.hasOwn(ERROR_CATALOGUE, error.code)
  // The guard above is what makes it a code of the catalogue.
  if (known) return `${ERROR_CATALOGUE[error.code as ErrorCode].fix} Then: ${replay}`
  return isPermanent(error.class)
    ? `the same input fails again: correct the handler or enqueue a corrected job; after a deployment: ${replay}`
    : `when the cause is gone: ${replay}; all that failed so: millrace dead replay --error ${JSON.stringify(error.message.slice(0, 40))}`
}
