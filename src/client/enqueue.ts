// Enqueue, one or many: middleware, then validation and encoding, then one insert, then handles.
// Everything that can be refused is refused before anything is written.
import type { AnyJob } from '../core/definition.ts'
import { MillraceError } from '../core/errors.ts'
import { checkNoCycle } from '../core/flow.ts'
import type { JobId, NewJob } from '../core/job.ts'
import { invalidOption } from '../core/names.ts'
import type { EventHub } from '../runtime/events.ts'
import type { Probe } from '../runtime/probe.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { Tracing } from '../runtime/tracing.ts'
import type { InsertOutcome, InsertReply, InsertResult } from '../store/ports.ts'
import type { Connections } from './connections.ts'
import type { EnqueueOptions } from './enqueue-options.ts'
import { createHandle } from './handle.ts'
import type { HandleServices, JobHandle } from './handle.ts'
import { Inserter } from './inserter.ts'
import type { EnsureQueues } from './inserter.ts'
import { compose } from '../core/compose.ts'
import type { EnqueueCall, EnqueueMiddleware, EnqueueReply } from './middleware.ts'
import { checkBulkSize } from './prepare.ts'
import type { Extras, Prepare, Prepared } from './prepare.ts'
import type { Registry } from './registry.ts'

export type JobName = AnyJob | string
/** One line of a bulk call; `extras` come only from Millrace itself. */
export type BulkLine = readonly [job: JobName, input: unknown, options?: EnqueueOptions | undefined, extras?: Extras]

export interface Enqueuer {
  one(job: JobName, input: unknown, options?: EnqueueOptions, extras?: Extras): Promise<JobHandle>
  /** One atom, in the order given. */
  many(lines: readonly BulkLine[], what?: string): Promise<readonly JobHandle[]>
  /** The same without writing: what would be inserted, and where. Middleware is not asked. */
  prepare(job: JobName, input: unknown, options?: EnqueueOptions, extras?: Extras): Promise<Prepared>
  /** Where jobs of this kind live. */
  connectionOf(job: JobName): string
  /** Makes the queue of a job that the store itself will insert later: a callback, a tick. */
  makeQueue(prepared: Prepared): Promise<void>
}

export interface EnqueuerParts {
  readonly runtime: Runtime
  readonly hub: EventHub
  readonly registry: Registry
  readonly connections: Connections
  readonly middleware: readonly EnqueueMiddleware[]
  readonly prepare: Prepare
  readonly handles: HandleServices
  /** What is known of the queues of a connection. */
  readonly ensureOf: (connection: string) => EnsureQueues
  /** Instead of the backend's own: writes inside somebody's transaction. */
  readonly insertVia?: (connection: string, jobs: readonly NewJob[]) => Promise<InsertReply>
  readonly probe?: Probe | undefined
  readonly tracing?: Tracing | undefined
}

export function createEnqueuer(parts: EnqueuerParts): Enqueuer {
  const { registry, middleware, tracing } = parts
  const inserterOf = createInserters(parts)
  const answer = createAnswer(parts)

  /** Not async: it is on the way of every single call, and each such layer is a promise more. */
  function insertOne(prepared: Prepared | Promise<Prepared>): Promise<EnqueueReply> {
    // Not awaited when it is there: calls of one tick must still meet in one insert.
    if (prepared instanceof Promise) return prepared.then(insertOne)
    const inserter = inserterOf(prepared.connection)
    const written = tracing?.isOn()
      ? tracing.enqueue([prepared.job], ([job]) => inserter.one(job!))
      : inserter.one(prepared.job)
    return written.then((result) => answer(prepared, result))
  }

  async function insertMany(prepared: readonly Prepared[], what: string): Promise<readonly EnqueueReply[]> {
    if (prepared.length === 0) return []
    const connection = parts.connections.common(
      prepared.map((one) => one.connection),
      what,
    )
    checkTogether(prepared)
    const inserter = inserterOf(connection)
    const jobs = prepared.map(({ job }) => job)
    const results = await (tracing?.isOn()
      ? tracing.enqueue(jobs, (carrying) => inserter.many(carrying))
      : inserter.many(jobs))
    return prepared.map((one, index) => answer(one, results[index]!))
  }

  const handleOf = (job: AnyJob, reply: EnqueueReply): JobHandle =>
    createHandle({ ...reply, connection: parts.connections.ofJob(job) }, parts.handles)

  return {
    connectionOf: (named) => parts.connections.ofJob(registry.resolve(named)),
    async one(named, input, options, extras) {
      const job = registry.resolve(named)
      if (middleware.length === 0) return handleOf(job, await insertOne(parts.prepare(job, input, options, extras)))
      const innermost = async (call: EnqueueCall): Promise<EnqueueReply> =>
        insertOne(parts.prepare(call.job, call.input, call.options, extras))
      return handleOf(job, await compose(middleware, innermost)({ job, input, options: options ?? {} }))
    },
    async many(lines, what = 'one bulk call') {
      if (!Array.isArray(lines)) throw invalidOption('enqueueMany()', lines, 'an array of [job, input, options?]')
      checkBulkSize(lines.length)
      const jobs = lines.map((line, index) => naming(index, () => jobOf(registry, line)))
      const prepareLine = (index: number, job: AnyJob, input: unknown, options: EnqueueOptions | undefined) =>
        naming(index, () => parts.prepare(job, input, options, lines[index]![3]))
      const write = async (prepared: readonly (Prepared | Promise<Prepared>)[]): Promise<readonly EnqueueReply[]> =>
        insertMany(await allThere(prepared), what)
      const replies =
        middleware.length === 0
          ? await write(
              lines.map(([, input, options], index) => prepareLine(index, jobs[index]!, input, options ?? undefined)),
            )
          : await passAll(middleware, callsOf(lines, jobs), async (arrived) =>
              write(arrived.map(([{ job, input, options }, index]) => prepareLine(index, job, input, options))),
            )
      return replies.map((reply, index) => handleOf(jobs[index]!, reply))
    },
    makeQueue: ({ connection, job }) => inserterOf(connection).makeQueues([job]),
    prepare: async (named, input, options, extras) => parts.prepare(registry.resolve(named), input, options, extras),
  }
}

function jobOf(registry: Registry, line: BulkLine): AnyJob {
  if (!Array.isArray(line)) throw invalidOption('a line of a bulk call', line, '[job, input, options?]')
  const [named]: BulkLine = line
  return registry.resolve(named)
}

/** As middleware sees them. */
function callsOf(lines: readonly BulkLine[], jobs: readonly AnyJob[]): readonly EnqueueCall[] {
  return lines.map(([, input, options], index) => ({ job: jobs[index]!, input, options: options ?? {} }))
}

/** One inserter per connection: each has its own line of waiting calls. */
function createInserters({
  connections,
  runtime,
  ensureOf,
  insertVia,
}: EnqueuerParts): (connection: string) => Inserter {
  const inserters = new Map<string, Inserter>()
  return (connection) => {
    const known = inserters.get(connection)
    if (known !== undefined) return known
    const { jobs, capabilities } = connections.backend(connection)
    const insert = (list: readonly NewJob[]): Promise<InsertReply> =>
      insertVia === undefined ? jobs.insert(list) : insertVia(connection, list)
    const ensure = ensureOf(connection)
    const insertsMax = insertVia === undefined ? capabilities.orderedInserts : 1
    const inserter = new Inserter({ runtime, insert, insideTransaction: insertVia !== undefined, ensure, insertsMax })
    inserters.set(connection, inserter)
    return inserter
  }
}

function createAnswer({ hub, insertVia, probe }: EnqueuerParts) {
  return ({ job, ownId }: Prepared, result: InsertResult): EnqueueReply => {
    // A minted id that is already there was written by our own first try, whose reply was lost.
    const outcome: InsertOutcome = result.outcome === 'already' && !ownId ? 'inserted' : result.outcome
    // A count may be too high by what is rolled back; without it everything that is written in transactions would be missing.
    probe?.enqueued(job, result.id, outcome !== 'inserted')
    // Inside a transaction nobody knows yet whether there will ever be such a job.
    if (insertVia === undefined && hub.has('enqueued')) {
      const { name, queue } = job
      hub.emit('enqueued', { id: result.id, name, queue, duplicate: outcome !== 'inserted', batch: job.batch ?? null })
    }
    return { id: result.id, outcome }
  }
}

function checkTogether(prepared: readonly Prepared[]): void {
  if (prepared.some(({ job }) => job.dependsOn !== undefined)) checkNoCycle(prepared.map(({ job }) => job))
  if (!prepared.some(({ ownId }) => ownId)) return
  const ids = new Set<JobId>()
  for (const { job } of prepared) {
    if (ids.has(job.id)) throw invalidOption('id', job.id, 'different for every job of one call')
    ids.add(job.id)
  }
}

/**
 * Each line passes its own onion, all of them meet at the innermost point, and one insert answers them.
 * A layer that answers by itself takes its line out of the insert; one that throws stops the whole call.
 */
async function passAll(
  middleware: readonly EnqueueMiddleware[],
  calls: readonly EnqueueCall[],
  write: (arrived: readonly (readonly [EnqueueCall, number])[]) => Promise<readonly EnqueueReply[]>,
): Promise<readonly EnqueueReply[]> {
  const arrived: {
    readonly line: readonly [EnqueueCall, number]
    readonly settle: (reply: Promise<EnqueueReply>) => void
  }[] = []
  const outcomes: Promise<EnqueueReply>[] = []
  const atCentre = calls.map(
    (call, index) =>
      new Promise<void>((resolve, reject) => {
        const innermost = (changed: EnqueueCall): Promise<EnqueueReply> =>
          new Promise((settle) => {
            arrived.push({ line: [changed, index], settle })
            resolve()
          })
        const outcome = compose(middleware, innermost)(call)
        outcomes.push(outcome)
        // Settled before the centre was reached: answered, or refused.
        outcome.then(() => resolve(), reject)
      }),
  )
  try {
    await Promise.all(atCentre)
  } catch (error) {
    // The lines that wait at the centre must not wait for ever.
    for (const { settle } of arrived) settle(Promise.reject(error))
    throw error
  }
  arrived.sort((a, b) => a.line[1] - b.line[1])
  const written = write(arrived.map(({ line }) => line))
  arrived.forEach(({ settle }, place) => settle(written.then((replies) => replies[place]!)))
  return Promise.all(outcomes)
}

/** Without a promise per job when every schema is synchronous. */
function allThere(
  prepared: readonly (Prepared | Promise<Prepared>)[],
): Promise<readonly Prepared[]> | readonly Prepared[] {
  return areThere(prepared) ? prepared : Promise.all(prepared.map((one) => Promise.resolve(one)))
}

function areThere(prepared: readonly (Prepared | Promise<Prepared>)[]): prepared is readonly Prepared[] {
  return prepared.every((one) => !(one instanceof Promise))
}

function naming<Value>(index: number, check: () => Value): Value {
  try {
    const value = check()
    if (!(value instanceof Promise)) return value
    const renamed = value.catch((error: unknown) => {
      throw named(index, error)
    })
    // Should a later line be refused at once, nobody will be left to hear of this one.
    renamed.catch(() => undefined)
    // The same promise but for its error.
    return renamed as Value
  } catch (error) {
    throw named(index, error)
  }
}

/** In a call with thousands of jobs the reader must learn which one is meant. */
function named(index: number, error: unknown): unknown {
  if (!(error instanceof MillraceError)) return error
  const { code, message, retryable, details } = error
  return new MillraceError(code, `job ${index} of this call: ${message}`, {
    cause: error,
    retryable,
    details: { ...details, index },
  })
}
