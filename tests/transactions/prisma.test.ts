// Prisma 7 with its adapter for pg: interactive transactions, nested and extended ones.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { transactionRunner } from '../../src/backends/postgres/transactions/runner.ts'
import { START_MAX_MS, caught, expectRefusal, insert } from './probe.ts'
import { createProbeDatabase } from './probe-database.ts'
import type { ProbeDatabase } from './probe-database.ts'
import { createPrisma } from './prisma-client.ts'
import type { PrismaClient, PrismaTransaction } from './prisma-client.ts'
import { keepsPromises } from './promises.ts'
import type { Subject } from './promises.ts'

const EXAMPLE = 'await prisma.$transaction(async (tx) => { await mill.in(tx).enqueue(job, input) })'
const EXTENSION = { query: { $allOperations: ({ args, query }: Extended) => query(args) } }

interface Extended {
  readonly args: unknown
  readonly query: (args: unknown) => unknown
}

let database: ProbeDatabase
let prisma: PrismaClient

beforeAll(async () => {
  database = await createProbeDatabase()
  prisma = createPrisma(database.url)
}, START_MAX_MS)

afterAll(async () => {
  await prisma.$disconnect()
  await database.drop()
})

describe('an interactive transaction', () => {
  keepsPromises(() => subjectOf(prisma))

  test('that expired is refused', async () => {
    const late = prisma.$transaction(
      async (tx) => {
        const runner = transactionRunner(tx)
        await tx.$queryRawUnsafe('select pg_sleep(0.2)::text as slept')
        expect(await caught(() => insert(runner, 'late'))).toMatchObject({ code: 'NOT_A_TRANSACTION' })
      },
      { timeout: 50 },
    )
    await expect(late).rejects.toMatchObject({ code: 'P2028' })
    expect(await database.ids()).toEqual([])
  })
})

describe('an interactive transaction of an extended client', () =>
  keepsPromises(() => subjectOf(prisma.$extends(EXTENSION))))

describe('refused is', () => {
  beforeEach(() => database.clear())
  const problem = 'this is the Prisma client itself and no transaction'

  test('the client', () => expectRefusal(prisma, problem, EXAMPLE))

  test('an extended client', () => expectRefusal(prisma.$extends(EXTENSION), problem, EXAMPLE))

  test('a client after its transaction', async () => {
    let kept: unknown
    await prisma.$transaction(async (tx) => void (kept = tx))
    await expectRefusal(kept, 'this Prisma transaction is over', EXAMPLE)
    expect(await database.ids()).toEqual([])
  })
})

function subjectOf(client: PrismaClient): Subject {
  return {
    ...database,
    library: 'Prisma',
    transaction: (body) => client.$transaction(body),
    savepoint: (tx, body) => (tx as PrismaTransaction).$transaction(body),
    own: (tx, text) => (tx as PrismaTransaction).$queryRawUnsafe(text),
  }
}
