// What holds for the transaction of every library: the same tests for each.
import { beforeEach, expect, test } from 'vitest'
import { transactionRunner } from '../../src/backends/postgres/transactions/runner.ts'
import type { SqlRunner } from '../../src/backends/postgres/transactions/runner.ts'
import { property } from '../../src/backends/postgres/transactions/shape.ts'
import { caught, insert, refusalOf } from './probe.ts'

export interface Subject {
  readonly library: string
  /** Commits when the body resolves; rolls back when it rejects, and rejects with the same. */
  readonly transaction: (body: (tx: unknown) => Promise<void>) => Promise<void>
  /** The same inside a savepoint of that transaction. */
  readonly savepoint: (tx: unknown, body: (inner: unknown) => Promise<void>) => Promise<void>
  /** A statement by the library itself, in that transaction. */
  readonly own: (tx: unknown, sql: string) => Promise<unknown>
  /** Empties the table. */
  readonly clear: () => Promise<void>
  /** What is stored, as another transaction sees it. */
  readonly ids: () => Promise<readonly unknown[]>
}

const boom = new Error('roll back')

export function keepsPromises(subject: () => Subject): void {
  beforeEach(() => subject().clear())

  test('D11 rows written in the transaction are there after its commit', async () => {
    const { transaction, ids, library } = subject()
    await transaction(async (tx) => {
      const runner = transactionRunner(tx)
      expect(runner.library).toBe(library)
      expect(await insert(runner, 'a', 'b')).toEqual([
        { id: 'a', outcome: 'inserted' },
        { id: 'b', outcome: 'inserted' },
      ])
      expect(await insert(runner, 'b')).toEqual([{ id: 'b', outcome: 'already' }])
    })
    expect(await ids()).toEqual(['a', 'b'])
  })

  test('D11 rows written in a transaction that is rolled back never existed', async () => {
    const { transaction, ids } = subject()
    const rolledBack = transaction(async (tx) => {
      await insert(transactionRunner(tx), 'a')
      throw boom
    })
    await expect(rolledBack).rejects.toBe(boom)
    expect(await ids()).toEqual([])
  })

  test('rows written in a savepoint share its fate', async () => {
    const { transaction, savepoint, ids } = subject()
    await transaction(async (tx) => {
      await insert(transactionRunner(tx), 'before')
      const rolledBack = savepoint(tx, async (inner) => {
        await insert(transactionRunner(inner), 'inside')
        throw boom
      })
      await expect(rolledBack).rejects.toBe(boom)
      await savepoint(tx, async (inner) => void (await insert(transactionRunner(inner), 'again')))
      await insert(transactionRunner(tx), 'after')
    })
    expect(await ids()).toEqual(['before', 'again', 'after'])
  })

  test('parameters of every kind arrive, in any order and more than once', async () => {
    const text = String.raw`it's $1, ? and \? — ü`
    await subject().transaction(async (tx) => {
      const columns =
        "$2::int as number, $1::text as text, $3::boolean as flag, $4::text as nothing, $1::text as again, $5::json->>'a' as field, $5::jsonb->>'a' as binary, $5::text as raw, '?' as mark"
      const raw = JSON.stringify({ a: text })
      expect(await transactionRunner(tx).query(`select ${columns}`, [text, 7, true, null, raw])).toEqual([
        { number: 7, text, flag: true, nothing: null, again: text, field: text, binary: text, raw, mark: '?' },
      ])
    })
  })

  test('an error is the one that the library would throw, and leaves the transaction aborted', async () => {
    const { transaction, own, ids } = subject()
    let theirs: unknown
    await caught(() =>
      transaction(async (tx) => {
        theirs = await caught(() => own(tx, "select 'no json'::json"))
        throw boom
      }),
    )
    const failed = transaction(async (tx) => {
      const runner = transactionRunner(tx)
      await insert(runner, 'a')
      const ours = await caught(() => runner.query('select probe_insert($1::json)', ['no json']))
      expect(sqlState(ours)).toBe('22P02')
      expect(Object.getPrototypeOf(ours)).toBe(Object.getPrototypeOf(theirs))
      expect(sqlState(await caught(() => own(tx, 'select 1')))).toBe('25P02')
      expect(sqlState(await caught(() => insert(runner, 'b')))).toBe('25P02')
      throw boom
    })
    await expect(failed).rejects.toBe(boom)
    expect(await ids()).toEqual([])
  })

  test('a transaction that is over is refused, and nothing is written', async () => {
    const { transaction, ids } = subject()
    const kept: { readonly tx: unknown; readonly runner: SqlRunner }[] = []
    await transaction(async (tx) => void kept.push({ tx, runner: transactionRunner(tx) }))
    await caught(() =>
      transaction(async (tx) => {
        kept.push({ tx, runner: transactionRunner(tx) })
        throw boom
      }),
    )
    expect(kept).toHaveLength(2)
    for (const { tx, runner } of kept) {
      expect((await refusalOf(tx)).message).toContain('await mill.in(')
      expect(await caught(() => insert(runner, 'late'))).toMatchObject({ code: 'NOT_A_TRANSACTION' })
    }
    expect(await ids()).toEqual([])
  })
}

/** Wherever the library keeps it: Prisma, Drizzle, the others. */
function sqlState(error: unknown): unknown {
  const paths = [['meta', 'driverAdapterError', 'cause', 'originalCode'], ['cause', 'code'], ['code']]
  return paths.map((path) => path.reduce(property, error)).find((code) => code !== undefined)
}
