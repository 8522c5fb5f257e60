// What belongs to no library at all.
import { expect, test } from 'vitest'
import { transactionRunner } from '../../src/backends/postgres/transactions/runner.ts'
import { refusalOf } from './probe.ts'

class Session {
  readonly secret = 'hidden'
}

function begin(): void {}

test.each([
  [undefined, 'undefined'],
  [null, 'null'],
  ['postgres://user:secret@host', 'a string'],
  [7, 'a number'],
  [{}, 'an empty object'],
  [{ host: 'a', password: 'secret' }, 'an object with host, password'],
  [{ a: 1, b: 2, c: 3, d: 4, e: 5, f: 6 }, 'an object with a, b, c, d, e, …'],
  [Object.create(null), 'an empty object'],
  [new Session(), 'an object of class Session'],
  [Promise.resolve(), 'a promise (await it first)'],
  [begin, 'the function begin'],
  // As of mysql2.
  [{ query: begin, connect: begin, end: begin }, 'an object with query, connect, end'],
])('%o is refused by what it is', async (value, named) => {
  const { message, details } = await refusalOf(value)
  expect(message).toBe(
    `${named} is not a transaction; pass an open one of pg, postgres.js, Drizzle, Kysely, Knex, Prisma, PGlite`,
  )
  expect(details).toEqual({ library: null })
})

test('what can be seen is refused before any query', () => {
  expect(() => transactionRunner(undefined)).toThrow('undefined is not a transaction')
})
