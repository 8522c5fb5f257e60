// Why a job is where it is, in words. Pure: facts in, reasons out, the most decisive one first. What was not to
// be known is null in the facts, and then nothing is claimed about it.
import type { Job } from '../client/job-view.ts'
import { formatDuration } from '../core/duration.ts'
import { assertNever } from '../core/errors.ts'
import type { LimitUse } from '../store/limit-store.ts'
import { isLive } from '../core/liveness.ts'
import type { SeenWorker } from '../observability/crew.ts'
import { counted } from './text.ts'
import type { Reason, WhyFacts } from './why-facts.ts'
import { failureReasons } from './why-failed.ts'

export function explain(facts: WhyFacts): readonly Reason[] {
  const { job } = facts
  switch (job.status) {
    case 'scheduled':
      return [scheduledReason(facts), ...hindrances(facts)]
    case 'blocked':
      return [...pausedReason(facts), blockedReason(facts), ...noWorker(facts)]
    case 'queued':
    case 'dispatched':
      return readyReasons(facts)
    case 'running':
      return runningReasons(facts)
    case 'completed':
      return [{ code: 'completed', says: `it completed ${ago(facts, job.finishedAt)} ${afterAttempts(job)}` }]
    case 'failed':
      return failureReasons(facts)
    case 'cancelled':
      return [{ code: 'cancelled', says: `it was cancelled ${ago(facts, job.finishedAt)}${because(facts)}` }]
    default:
      return assertNever(job.status)
  }
}

function scheduledReason(facts: WhyFacts): Reason {
  const { job, nowMs } = facts
  const inMs = job.runAt.getTime() - nowMs
  const when =
    inMs > 0
      ? `until ${job.runAt.toISOString()}, in ${short(inMs)}`
      : `since its time came ${short(-inMs)} ago, for somebody to promote it`
  if (inMs < -LATE_MS) {
    const fix = 'start a worker: promotion is part of its maintenance'
    return { code: 'promotion-late', says: `it waits ${when}`, fix }
  }
  switch (job.waitsFor) {
    case 'retry': {
      const error = job.lastError === null ? '' : ` with ${job.lastError.name}: ${job.lastError.message}`
      const tries = `attempt ${job.attemptCount} of ${job.maxAttempts} failed${error}`
      return { code: 'retry', says: `it waits for its next try ${when}: ${tries}` }
    }
    case 'rate':
      return { code: 'rate', says: `it waits ${when}: ${rateWords(facts)}`, fix: rateFix(facts) }
    case 'snooze':
      return { code: 'snooze', says: `its handler put it off ${when}` }
    case null:
    case 'delay':
    case 'parents':
    case 'group':
    case 'queue-slot':
    case 'key-slot':
      return { code: 'delay', says: `it is scheduled ${when}` }
    default:
      return assertNever(job.waitsFor)
  }
}

/** Promotion takes place twice a second. */
const LATE_MS = 5_000

function blockedReason(facts: WhyFacts): Reason {
  const { job, queue, parents, groupAhead, queueUse, keyUse } = facts
  switch (job.waitsFor) {
    case 'parents': {
      const [first] = parents.open
      const count = parents.open.length + parents.unseen
      const named = first === undefined ? '' : `: ${first.name ?? 'job'} ${first.id} is ${first.status}`
      const fix = first === undefined ? {} : { fix: `ask the same of it: millrace why ${first.id}` }
      return { code: 'parents', says: `it waits for ${counted(count, 'job')} to complete first${named}`, ...fix }
    }
    case 'group': {
      const says = `it waits for its turn in group ${job.group}, whose jobs run one at a time, in order`
      if (groupAhead === null) return { code: 'group', says }
      const { id, status } = groupAhead
      return {
        code: 'group',
        says: `${says}: ${id} goes first and is ${status}`,
        fix: `ask the same of it: millrace why ${id}`,
      }
    }
    case 'queue-slot': {
      const limit = queueUse?.slotsLimit ?? queue?.limits.concurrency ?? null
      const says = `it waits for a slot of queue ${job.queue}${useWords(queueUse, limit)}`
      return { code: 'queue-slot', says, fix: `raise it: millrace queues set ${job.queue} --concurrency N` }
    }
    case 'key-slot': {
      const limit = keyUse?.slotsLimit ?? queue?.limits.perKeyConcurrency ?? null
      const says = `it waits for a slot of key ${job.limitKey} in queue ${job.queue}${useWords(keyUse, limit)}`
      return { code: 'key-slot', says, fix: `raise it: millrace queues set ${job.queue} --key-concurrency N` }
    }
    case 'rate':
      return { code: 'rate', says: `it waits: ${rateWords(facts)}`, fix: rateFix(facts) }
    case null:
    case 'delay':
    case 'retry':
    case 'snooze':
      return { code: 'blocked', says: 'it is blocked, and the store does not say by what' }
    default:
      return assertNever(job.waitsFor)
  }
}

function readyReasons(facts: WhyFacts): readonly Reason[] {
  const { job, ahead } = facts
  const hindered = hindrances(facts)
  if (hindered.length > 0) return hindered
  const limited = facts.queue?.limits.rate !== null || facts.queue?.limits.perKeyRate !== null
  const first = ahead === null || ahead.count === 0
  const position: Reason = first
    ? { code: 'ready', says: 'it is ready and next in line: a worker takes it as soon as one has a free slot' }
    : {
        code: 'ahead',
        says: `it is ready, behind ${ahead.count}${ahead.atLeast ? ' or more' : ''} ${ahead.count === 1 ? 'job' : 'jobs'} of queue ${job.queue} that are more urgent (its priority is ${job.priority}) or came before it`,
        fix: 'more workers, more concurrency, or a lower priority number when it is enqueued',
      }
  const busy = busyReason(facts)
  const rate = limited ? rateOpen(facts) : []
  return [position, ...busy, ...rate]
}

function runningReasons(facts: WhyFacts): readonly Reason[] {
  const { job, workers, nowMs } = facts
  const since =
    job.startedAt === null ? '' : ` since ${job.startedAt.toISOString()}, ${short(nowMs - job.startedAt.getTime())}`
  const on = job.worker === null ? '' : ` on worker ${job.worker}`
  const running: Reason = {
    code: 'running',
    says: `it runs${since}${on}, attempt ${job.attemptCount + 1} of ${job.maxAttempts}`,
  }
  const reasons = [running]
  if (job.cancelRequested) {
    reasons.push({ code: 'cancel-requested', says: 'cancellation was asked for; its handler has to notice its signal' })
  }
  const dueMs = job.startedAt === null ? Infinity : job.startedAt.getTime() + job.timeoutMs
  if (nowMs > dueMs) {
    const says = `it is past its timeout of ${formatDuration(job.timeoutMs)}; it was extended, or its worker cannot act`
    reasons.push({ code: 'past-timeout', says })
  }
  if (job.worker === null) return reasons
  const worker = workers.find(({ id }) => id === job.worker)
  if (worker === undefined || !isLive(worker, nowMs)) {
    const silent =
      worker === undefined ? 'is not known any more' : `has not been heard of for ${short(nowMs - worker.lastBeatAtMs)}`
    const says = `its worker ${silent}: the job is given to another one as soon as some process runs maintenance`
    reasons.push({ code: 'worker-dead', says, fix: 'start a worker: millrace work' })
  } else {
    const blocked =
      worker.blockedMs > BLOCKED_MS ? `, but its event loop has stood still for ${short(worker.blockedMs)}` : ''
    const says = `its worker is alive: process ${worker.pid} on ${worker.host}, last heard of ${short(nowMs - worker.lastBeatAtMs)} ago${blocked}`
    reasons.push({ code: 'worker-alive', says })
  }
  return reasons
}

const BLOCKED_MS = 1_000

/** What keeps a job from starting although it could. */
function hindrances(facts: WhyFacts): readonly Reason[] {
  return [...pausedReason(facts), ...noWorker(facts)]
}

function pausedReason({ job, queue }: WhyFacts): readonly Reason[] {
  if (!queue?.paused) return []
  return [{ code: 'queue-paused', says: `queue ${job.queue} is paused`, fix: `millrace queues resume ${job.queue}` }]
}

function noWorker({ job, workers, nowMs }: WhyFacts): readonly Reason[] {
  if (serving(workers, job, nowMs).length > 0) return []
  const others = workers.filter((worker) => isLive(worker, nowMs)).length
  const who =
    others === 0 ? 'no worker is alive' : `none of the ${counted(others, 'live worker')} serves queue ${job.queue}`
  return [{ code: 'no-worker', says: who, fix: `millrace work --queue ${job.queue}` }]
}

function busyReason({ job, workers, nowMs }: WhyFacts): readonly Reason[] {
  const live = serving(workers, job, nowMs)
  const slots = live.reduce((sum, { concurrency }) => sum + concurrency, 0)
  const running = live.reduce((sum, worker) => sum + worker.running, 0)
  if (running < slots) return []
  const says = `all ${slots} slots of the ${counted(live.length, 'live worker')} that serve${live.length === 1 ? 's' : ''} queue ${job.queue} are busy`
  return [{ code: 'workers-busy', says, fix: 'more workers, or more concurrency' }]
}

function serving(workers: readonly SeenWorker[], job: Job, nowMs: number): readonly SeenWorker[] {
  return workers.filter(
    (worker) => worker.connection === job.connection && worker.queues.includes(job.queue) && isLive(worker, nowMs),
  )
}

function rateOpen(facts: WhyFacts): readonly Reason[] {
  const waitMs = Math.max(facts.queueUse?.nextTokenInMs ?? 0, facts.keyUse?.nextTokenInMs ?? 0)
  return waitMs > 0 ? [{ code: 'rate', says: rateWords(facts), fix: rateFix(facts) }] : []
}

function rateWords({ job, queue, queueUse, keyUse }: WhyFacts): string {
  const rate = queue?.limits.rate ?? null
  const keyRate = queue?.limits.perKeyRate ?? null
  const next = Math.max(queueUse?.nextTokenInMs ?? 0, keyUse?.nextTokenInMs ?? 0)
  const words = [
    ...(rate === null ? [] : [`queue ${job.queue} may start ${rate.limit} per ${formatDuration(rate.perMs)}`]),
    ...(keyRate === null || job.limitKey === null
      ? []
      : [`key ${job.limitKey} may start ${keyRate.limit} per ${formatDuration(keyRate.perMs)}`]),
  ]
  const limits = words.length === 0 ? 'a rate limit was used up when it asked' : words.join(', and ')
  return next > 0 ? `${limits}; the next start is free in ${short(next)}` : limits
}

function rateFix({ job }: WhyFacts): string {
  return `raise it: millrace queues set ${job.queue} ${job.limitKey === null ? '--rate' : '--key-rate'} 100/m`
}

function useWords(use: LimitUse | null, limit: number | null): string {
  if (use === null) return limit === null ? '' : `, which has ${limit}`
  return `: ${use.slotsUsed} of ${limit ?? use.slotsUsed} are in use, and ${counted(use.waiting, 'job')} wait${use.waiting === 1 ? 's' : ''} for one`
}

function because({ attempts, job }: WhyFacts): string {
  const last = attempts.at(-1)
  const words = last?.note ?? job.lastError?.message ?? last?.error?.message
  return words === undefined || words === '' ? '' : `: ${words}`
}

function ago({ nowMs }: WhyFacts, at: Date | null): string {
  return at === null ? '' : `${short(nowMs - at.getTime())} ago`
}

function afterAttempts({ attemptCount }: Job): string {
  return `after ${counted(attemptCount, 'attempt')}`
}

function short(ms: number): string {
  return formatDuration(ms < 1_000 ? Math.max(0, Math.round(ms)) : Math.round(ms / 1_000) * 1_000)
}
