// `completeWith(tx)`: the writes of a handler and the completion of its job are committed together, or neither is.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { decideExpiry } from '../../src/core/decide.ts'
import { DEFAULT_RETRY } from '../../src/core/retry.ts'
import { createMillrace, defineJob, fixed, memory, postgres } from '../../src/index.ts'
import type { Backend, JobHandle, RunContext } from '../../src/index.ts'
import { createTestMillrace } from '../../src/testing/index.ts'
import { LIBRARIES, openPg } from './libraries.ts'
import type { Library } from './libraries.ts'
import { createMillDatabase, pause, signal } from './mill-database.ts'
import type { MillDatabase } from './mill-database.ts'
import { START_MAX_MS, caught } from './probe.ts'

type Script = (context: RunContext<string>) => Promise<unknown>

/** What the handler does, by its input: each test writes its own. */
const scripts = new Map<string, Script>()
const scripted = defineJob({
  name: 'scripted',
  queue: 'scripted',
  retry: fixed({ attempts: 3, delay: 20 }),
  run: (context: RunContext<string>) => scripts.get(context.input)!(context),
})
const after = defineJob({ name: 'after', queue: 'others', run: () => 'ran' })
const callback = defineJob({ name: 'callback', queue: 'others', run: () => 'called' })
const limited = defineJob({
  name: 'limited',
  queue: 'limited',
  group: () => 'one',
  run: (context: RunContext<string>) => scripts.get(context.input)!(context),
})
const jobs = [scripted, after, callback, limited] as const

const boom = new Error('roll back')
let database: MillDatabase<typeof jobs>
let mill: MillDatabase<typeof jobs>['mill']
let other: Backend
let events: string[] = []
let stops: (() => void)[] = []

beforeAll(async () => {
  database = await createMillDatabase({ jobs, queues: { limited: { concurrency: 2 } } })
  mill = database.mill
  other = postgres({ url: database.url, poolMax: 2 })
  await other.start()
  await mill.work({ concurrency: 4 })
}, START_MAX_MS)

afterAll(async () => {
  await other.stop()
  await database.drop()
})

beforeEach(async () => {
  await database.query('truncate orders')
  events = []
  const names = ['completed', 'retried', 'failed', 'cancelled', 'released', 'stale'] as const
  stops = names.map((name) => mill.on(name, ({ id }) => events.push(`${name} ${id}`)))
})

afterEach(() => stops.forEach((stop) => stop()))

/** Runs this as the handler of a new job. */
async function enqueue(script: Script, options: Parameters<typeof mill.enqueue>[2] = {}): Promise<JobHandle<unknown>> {
  const key = `script ${scripts.size}`
  scripts.set(key, script)
  return mill.enqueue(scripted, key, options)
}

const attemptsOf = async (id: string) => (await mill.jobs.attempts(id)).map(({ status }) => status)

describe.each(Object.entries(LIBRARIES))('%s', (_, open) => {
  let library: Library
  beforeAll(() => void (library = open(database.url)))
  afterAll(() => library.close())

  test('D11 the commit completes the job, with its result, an audit row and the writes of the handler', async () => {
    const handle = await enqueue(async ({ completeWith, log, progress, job }) => {
      log.info('before')
      progress(50)
      await library.transaction(async (tx) => {
        await library.own(tx, "insert into orders values ('paid')")
        await completeWith(tx, { paid: true })
        expect((await mill.jobs.get(job.id))?.status).toBe('running')
      })
      return 'is not the result'
    })
    expect(await handle.result({ timeout: '10s' })).toEqual({ paid: true })
    expect(await database.orders()).toEqual(['paid'])
    expect(await mill.jobs.get(handle.id)).toMatchObject({ status: 'completed', attemptCount: 1, progress: 50 })
    expect(await attemptsOf(handle.id)).toEqual(['success'])
    expect((await mill.jobs.logs(handle.id)).map(({ message }) => message)).toEqual(['before'])
    await expect.poll(() => events).toEqual([`completed ${handle.id}`])
  })

  test('D11 after a rollback nothing was written, and the job runs again as after any failure', async () => {
    const handle = await enqueue(async ({ completeWith, attempt, log }) => {
      await library.transaction(async (tx) => {
        log.info(`attempt ${attempt}`)
        await library.own(tx, `insert into orders values ('of attempt ${attempt}')`)
        await completeWith(tx, attempt)
        if (attempt === 1) throw boom
      })
    })
    expect(await handle.result({ timeout: '10s' })).toBe(2)
    expect(await database.orders()).toEqual(['of attempt 2'])
    const [first, second] = await mill.jobs.attempts(handle.id)
    expect(first).toMatchObject({ status: 'retry', error: { message: boom.message } })
    expect(second).toMatchObject({ status: 'success' })
    expect((await mill.jobs.logs(handle.id)).map(({ message }) => message)).toEqual(['attempt 1', 'attempt 2'])
    await expect.poll(() => events).toEqual([`retried ${handle.id}`, `completed ${handle.id}`])
  })

  test('D11 a run that lost its job cannot complete it, and its writes are rolled back', async () => {
    const errors: unknown[] = []
    const handle = await enqueue(async ({ completeWith, attempt, job }) => {
      if (attempt > 1) return 'the second run'
      const [held] = await other.query.get([job.id])
      await other.jobs.apply([decideExpiry(held!, { retry: DEFAULT_RETRY }, Math.random)])
      const failed = library.transaction(async (tx) => {
        await library.own(tx, "insert into orders values ('stale')")
        await completeWith(tx)
      })
      errors.push(await caught(() => failed))
      throw errors[0]
    })
    expect(await handle.result({ timeout: '10s' })).toBe('the second run')
    await expect.poll(() => errors).toMatchObject([{ code: 'LEASE_LOST' }])
    expect(await database.orders()).toEqual([])
    await expect.poll(() => [...events].sort()).toEqual([`completed ${handle.id}`, `stale ${handle.id}`])
  })
})

describe('with pg', () => {
  let library: Library
  beforeAll(() => void (library = openPg(database.url)))
  afterAll(() => library.close())

  test('D11 a handler that swallows the rollback has not completed its job', async () => {
    const handle = await enqueue(async ({ completeWith, attempt }) => {
      const transaction = library.transaction(async (tx) => {
        await completeWith(tx, attempt)
        if (attempt === 1) throw boom
      })
      await transaction.catch(() => undefined)
      return 'believes in it'
    })
    expect(await handle.result({ timeout: '10s' })).toBe(2)
    const [first] = await mill.jobs.attempts(handle.id)
    expect(first).toMatchObject({ status: 'retry', error: { code: 'NOT_COMMITTED', class: 'server' } })
  })

  test('D11 a commit whose answer was lost counts, whatever the handler says', async () => {
    const handle = await enqueue(async ({ completeWith }) => {
      await library.transaction(async (tx) => {
        await library.own(tx, "insert into orders values ('once')")
        await completeWith(tx, 'committed')
      })
      throw new Error('connection lost')
    })
    expect(await handle.result({ timeout: '10s' })).toBe('committed')
    await expect.poll(() => events).toEqual([`completed ${handle.id}`])
    expect(await attemptsOf(handle.id)).toEqual(['success'])
  })

  test('D11 a transaction that is made again completes the job once, and doubles nothing', async () => {
    const rolledBack = await enqueue(async ({ completeWith }) => {
      for (const time of [1, 2]) {
        const transaction = library.transaction(async (tx) => {
          await library.own(tx, `insert into orders values ('rolled back ${time}')`)
          await completeWith(tx, time)
          if (time === 1) throw boom
        })
        await transaction.catch(() => undefined)
      }
    })
    expect(await rolledBack.result({ timeout: '10s' })).toBe(2)
    const committed = await enqueue(async ({ completeWith }) => {
      for (const time of [1, 2]) {
        await library.transaction(async (tx) => {
          await library.own(tx, `insert into orders values ('committed ${time}')`)
          await completeWith(tx, time)
        })
      }
    })
    expect(await committed.result({ timeout: '10s' })).toBe(1)
    expect(await database.orders()).toEqual(['committed 1', 'rolled back 2'])
    await expect.poll(() => events).toEqual([`completed ${rolledBack.id}`, `completed ${committed.id}`])
  })

  test('D11 a handler that ends before its transaction is judged by how that ends', async () => {
    const ends: string[] = []
    for (const isCommitted of [true, false]) {
      const ended = signal()
      const open = signal()
      let transaction: Promise<unknown> | undefined
      const handle = await enqueue(async ({ completeWith, attempt }) => {
        if (attempt > 1) return 'the second run'
        transaction = library.transaction(async (tx) => {
          await library.own(tx, `insert into orders values ('open ${isCommitted}')`)
          await completeWith(tx, 'the first run')
          ended.resolve()
          await open.promise
          if (!isCommitted) throw boom
        })
        transaction.catch(() => undefined)
        await ended.promise
        return 'too early'
      })
      await ended.promise
      // Others go on meanwhile, and in the same worker.
      expect(await mill.enqueueAndWait(after, undefined, {}, { timeout: '4s' })).toBe('ran')
      expect(await handle.status()).toBe('running')
      open.resolve()
      expect(await handle.result({ timeout: '10s' })).toBe(isCommitted ? 'the first run' : 'the second run')
      await transaction?.catch(() => undefined)
      ends.push(...(isCommitted ? [] : [`retried ${handle.id}`]), `completed ${handle.id}`)
    }
    expect(await database.orders()).toEqual(['open true'])
    await expect.poll(() => events).toEqual(expect.arrayContaining(ends))
    expect(events.filter((event) => event.startsWith('stale'))).toEqual([])
  })

  test('D11 an open transaction holds up no other job of the worker, and no report', async () => {
    const completed = signal()
    const goOn = signal()
    const handle = await enqueue(async ({ completeWith, progress, log }) => {
      progress(10)
      await library.transaction(async (tx) => {
        log.info('before')
        await completeWith(tx)
        progress(20)
        log.info('after')
        completed.resolve()
        await goOn.promise
      })
    })
    await completed.promise
    for (let count = 0; count < 5; count++) {
      const reporting = await enqueue(async ({ progress }) => progress(count))
      await reporting.result({ timeout: '4s' })
    }
    goOn.resolve()
    await handle.result({ timeout: '10s' })
    expect(await mill.jobs.get(handle.id)).toMatchObject({ status: 'completed', progress: 10 })
    expect((await mill.jobs.logs(handle.id)).map(({ message }) => message)).toEqual(['before'])
    await expect.poll(() => events).toContain(`completed ${handle.id}`)
    expect(events.filter((event) => event.startsWith('stale'))).toEqual([])
  })

  test('D11 a report for a job that somebody has locked waits alone, and nothing of it is lost', async () => {
    const locked = signal()
    const goOn = signal()
    const handle = await enqueue(async ({ progress, log, job }) => {
      await library.transaction(async (tx) => {
        // The child needs the row of its parent.
        await mill.in(tx).enqueue(after, undefined, { after: job.id })
        progress(10)
        log.info('while it was locked')
        locked.resolve()
        await goOn.promise
        log.info('at the end')
      })
    })
    await locked.promise
    for (let count = 0; count < 5; count++) {
      const reporting = await enqueue(async ({ progress }) => progress(count))
      await reporting.result({ timeout: '4s' })
    }
    expect(await mill.jobs.get(handle.id)).toMatchObject({ status: 'running', progress: null })
    goOn.resolve()
    await handle.result({ timeout: '10s' })
    expect(await mill.jobs.get(handle.id)).toMatchObject({ status: 'completed', progress: 10 })
    expect((await mill.jobs.logs(handle.id)).map(({ message }) => message)).toEqual([
      'while it was locked',
      'at the end',
    ])
  })

  test('D11 cancellation: what was committed is completed, what was rolled back is cancelled', async () => {
    for (const isCommitted of [true, false]) {
      const handle = await enqueue(async ({ completeWith, signal: aborted, job }) => {
        await mill.jobs.cancel(job.id)
        await new Promise((resolve) => aborted.addEventListener('abort', resolve))
        await library.transaction(async (tx) => {
          await completeWith(tx, 'anyway')
          if (!isCommitted) throw boom
        })
      })
      await database.becomes(handle.id, isCommitted ? 'completed' : 'cancelled')
      await expect.poll(() => events).toContain(`${isCommitted ? 'completed' : 'cancelled'} ${handle.id}`)
    }
  })

  test('D11 a deadline that passes while the transaction is open does not undo its commit', async () => {
    const over = signal()
    const handle = await enqueue(
      async ({ completeWith, signal: aborted }) => {
        await library.transaction(async (tx) => {
          await completeWith(tx, 'in time')
          await new Promise((resolve) => aborted.addEventListener('abort', resolve))
          // Longer than the grace of an aborted handler: its run ends without it.
          await pause(1_500)
        })
        over.resolve()
      },
      { timeout: 50 },
    )
    expect(await handle.result({ timeout: '10s' })).toBe('in time')
    await over.promise
    await expect.poll(() => events).toEqual([`completed ${handle.id}`])
  })

  test('D11 a run that is over cannot complete its job any more', async () => {
    const errors: unknown[] = []
    const handle = await enqueue(
      async ({ completeWith, attempt, signal: aborted }) => {
        if (attempt > 1) return 'the second run'
        await new Promise((resolve) => aborted.addEventListener('abort', resolve))
        await pause(1_500)
        const late = library.transaction(async (tx) => {
          await library.own(tx, "insert into orders values ('late')")
          await completeWith(tx)
        })
        errors.push(await caught(() => late))
        return 'ignored'
      },
      { timeout: 50 },
    )
    expect(await handle.result({ timeout: '10s' })).toBe('the second run')
    await expect.poll(() => errors).toMatchObject([{ code: 'LEASE_LOST' }])
    expect(await database.orders()).toEqual([])
  })

  test('D11 what hangs on the end of a job waits for the commit: children, batch, unique key, group, slots', async () => {
    const [start, completed, goOn] = [signal(), signal(), signal()]
    const batch = await mill.batch('with-a-callback', { onComplete: [callback] })
    scripts.set('hangs', async ({ completeWith }) => {
      await start.promise
      await library.transaction(async (tx) => {
        await completeWith(tx, 'done')
        completed.resolve()
        await goOn.promise
      })
    })
    scripts.set('next in the group', async () => 'next')
    const parent = await mill.enqueue(limited, 'hangs', { batch, unique: 'hangs' })
    await batch.seal()
    const child = await mill.enqueue(after, undefined, { after: parent })
    const next = await mill.enqueue(limited, 'next in the group')
    start.resolve()
    await completed.promise
    expect(await Promise.all([child.status(), next.status()])).toEqual(['blocked', 'blocked'])
    expect(await batch.progress()).toMatchObject({ pending: 1, completed: 0 })
    goOn.resolve()
    expect(await Promise.all([child, next].map((one) => one.result({ timeout: '10s' })))).toEqual(['ran', 'next'])
    expect((await batch.wait({ timeout: '10s' })).progress).toMatchObject({ pending: 0, completed: 1 })
    expect(await mill.enqueue(limited, 'next in the group', { unique: 'hangs' })).toMatchObject({ duplicate: false })
    const { items } = await mill.jobs.list({ name: 'callback' })
    expect(items).toHaveLength(1)
  })

  test('D11 enqueue and completion in one transaction', async () => {
    const handle = await enqueue(async ({ completeWith, attempt, job, progress }) => {
      await library.transaction(async (tx) => {
        // It waits for this very job, which is locked from here on: also for a report, which must not be waited for.
        const next = await mill.in(tx).enqueue(after, undefined, { tags: [`of attempt ${attempt}`], after: job.id })
        progress(attempt)
        await pause(50)
        await completeWith(tx, next.id)
        if (attempt === 1) throw boom
      })
    })
    const id = (await handle.result({ timeout: '10s' })) as string
    expect(await mill.result(id, { timeout: '10s' })).toBe('ran')
    expect((await mill.jobs.list({ tag: 'of attempt 1' })).items).toEqual([])
  })

  test('D11 a connection that is lost before the commit takes everything back', async () => {
    const handle = await enqueue(async ({ completeWith, attempt }) => {
      await library
        .transaction(async (tx) => {
          await library.own(tx, `insert into orders values ('of attempt ${attempt}')`)
          await completeWith(tx, attempt)
          // Somebody else ends the session; the error reaches this client with its next statement.
          if (attempt === 1) await library.own(tx, 'select pg_terminate_backend(pg_backend_pid())')
        })
        .catch((error: unknown) => {
          throw new Error('the transaction failed', { cause: error })
        })
    })
    expect(await handle.result({ timeout: '10s' })).toBe(2)
    expect(await database.orders()).toEqual(['of attempt 2'])
  })

  test('D11 what is no transaction is refused, and the job goes on as if nothing was asked', async () => {
    const errors: unknown[] = []
    const handle = await enqueue(async ({ completeWith }) => {
      errors.push(await caught(() => completeWith({})))
      return 'returned'
    })
    expect(await handle.result({ timeout: '10s' })).toBe('returned')
    expect(errors).toMatchObject([{ code: 'NOT_A_TRANSACTION' }])
  })
})

describe('without a transaction to ask', () => {
  const paid = defineJob({
    name: 'paid',
    async run({ input, completeWith }: RunContext<{ fails: boolean }>) {
      await completeWith({}, { by: 'completeWith' })
      if (input.fails) throw boom
      return { by: 'return' }
    },
  })

  test('D11 a backend that is not on PostgreSQL refuses', async () => {
    const elsewhere = await createMillrace({ jobs: [paid], backend: memory() })
    await elsewhere.work()
    const failed = elsewhere.enqueueAndWait(paid, { fails: false }, { attempts: 1 }, { timeout: '10s' })
    const error = await caught(() => failed)
    expect(error).toMatchObject({ code: 'JOB_FAILED' })
    expect(String((error as Error).message)).toContain('cannot complete a job inside your transaction')
    await elsewhere.stop()
  })

  test('D11 a direct run and the testing kit keep the result, and the handler decides the end', async () => {
    expect(await paid.run({ fails: false })).toEqual({ by: 'completeWith' })
    await expect(paid.run({ fails: true })).rejects.toBe(boom)
    const kit = await createTestMillrace({ jobs: [paid] })
    expect(await kit.perform(paid, { fails: false })).toMatchObject({
      status: 'completed',
      result: { by: 'completeWith' },
    })
    expect(await kit.perform(paid, { fails: true })).toMatchObject({ status: 'retried', thrown: boom })
    await kit.stop()
  })
})
