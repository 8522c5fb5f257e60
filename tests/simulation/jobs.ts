// The jobs of the simulation. What a run does comes from its input: a list of steps, one per start, counted
// by the outside ledger; after the list every run succeeds, so everything can end.
import { cancel, defineJob, fail, fixed, exponential, release, retryAfter, snooze } from '../../src/index.ts'
import type { AnyJob, RunContext } from '../../src/index.ts'
import { sleep } from '../../src/runtime/clock.ts'
import type { Checker } from './checker.ts'
import type { Ledger } from './ledger.ts'
import type { SimProcess } from './sim-process.ts'

export const STEPS = [
  'ok',
  'sync',
  'slow',
  'very-slow',
  'throw',
  'throw-odd',
  'permanent',
  'retry-after',
  'snooze',
  'release',
  'cancel',
  'fail',
  'never-settles',
  'until-aborted',
  'progress',
  'child',
  'kill',
] as const
/** `long`: for longer than anything goes wrong. */
export type Step = (typeof STEPS)[number] | 'long'

export interface SimInput {
  readonly no: number
  readonly steps: readonly Step[]
}

type SimContext = RunContext<SimInput>

export function simJobs(process: SimProcess, ledger: Ledger, checker: Checker): Record<JobKind, AnyJob> {
  const run = (context: SimContext): unknown => {
    // A crashed process does nothing any more, although its promises still exist in ours.
    if (!process.alive) return new Promise(() => undefined)
    const { no, steps } = context.input
    const { id, worker } = context.job
    checker.started(id, worker)
    const step = steps[ledger.started(no, id)] ?? 'ok'
    if (step === 'sync') return { no }
    const ended = checker.runs(id, worker, () => process.alive && !context.signal.aborted)
    return act(step, context, process, child).finally(ended)
  }
  const handler = run as (context: SimContext) => Promise<{ no: number }>
  const common = { timeout: '3s', run: handler } as const
  const child = defineJob({ ...common, name: 'child', queue: 'open', attempts: 2 })
  return {
    plain: defineJob({
      ...common,
      name: 'plain',
      queue: 'open',
      retry: exponential({ attempts: 4, base: 200, max: '2s' }),
    }),
    limited: defineJob({ ...common, name: 'limited', queue: 'limited', retry: fixed({ attempts: 3, delay: 300 }) }),
    callback: defineJob({ ...common, name: 'callback', queue: 'open', attempts: 5 }),
    long: defineJob({ ...common, name: 'long', queue: 'open', attempts: 4, timeout: '5m' }),
    tick: defineJob({ ...common, name: 'tick', queue: 'ticks', attempts: 2 }),
    child,
  }
}

export type JobKind = 'plain' | 'limited' | 'callback' | 'long' | 'tick' | 'child'

async function act(step: Step, context: SimContext, process: SimProcess, child: AnyJob): Promise<unknown> {
  const { clock, random } = process.runtime
  const { no } = context.input
  await sleep(clock, lengthMs(step, random))
  switch (step) {
    case 'throw':
      throw new Error(`request ${no} fails`)
    case 'throw-odd':
      // oxlint-disable-next-line no-throw-literal, typescript/only-throw-error -- handlers do such things
      throw undefined
    case 'permanent':
      throw Object.assign(new Error('bad request'), { status: 400 })
    case 'retry-after':
      return retryAfter(500)
    case 'snooze':
      return snooze(400)
    case 'release':
      throw release()
    case 'cancel':
      return cancel('no longer wanted')
    case 'fail':
      throw fail('hopeless')
    case 'never-settles':
      return new Promise(() => undefined)
    case 'until-aborted':
      await new Promise((_, reject) =>
        context.signal.addEventListener('abort', () => reject(context.signal.reason as Error)),
      )
      return { no }
    case 'progress':
      context.progress(50)
      context.log.info('half way')
      await sleep(clock, 200)
      return { no }
    case 'child':
      // The child is another request; the ledger does not follow it, the invariants do.
      await (context.enqueue as (job: AnyJob, input: unknown, options: unknown) => Promise<unknown>)(
        child,
        { no: -1, steps: [] },
        context.job.batch === null ? {} : { batch: 'same' },
      )
      return { no }
    case 'kill':
      process.crash()
      return new Promise(() => undefined)
    case 'ok':
    case 'sync':
    case 'slow':
    case 'very-slow':
    case 'long':
      return { no }
  }
}

function lengthMs(step: Step, random: () => number): number {
  if (step === 'long') return 60_000 + random() * 20_000
  if (step === 'very-slow') return 2_500
  return step === 'slow' ? 300 + random() * 700 : random() * 30
}
