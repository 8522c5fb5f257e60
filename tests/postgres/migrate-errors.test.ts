// What the server, the driver and the network say, in the words of Millrace.
import { describe, expect, test } from 'vitest'
import { sqlStateOf, storeError } from '../../src/backends/postgres/pg-errors.ts'
import { withoutPasswords } from '../../src/core/secrets.ts'
import { MillraceError } from '../../src/core/errors.ts'

function failure(code: string | undefined, message = 'said by the server'): Error {
  return Object.assign(new Error(message), code === undefined ? {} : { code })
}

describe('storeError', () => {
  test.each([
    ['28P01', 'STORE_REFUSED', false, /password was refused/],
    ['28000', 'STORE_REFUSED', false, /refused the login/],
    ['3D000', 'STORE_REFUSED', false, /create database/],
    ['42501', 'STORE_REFUSED', false, /lacks a permission/],
    ['53300', 'STORE_UNAVAILABLE', true, /too many connections/],
    ['53100', 'STORE_UNAVAILABLE', true, /disk full/],
    ['53400', 'STORE_UNAVAILABLE', true, /short of a resource/],
    ['57P01', 'STORE_UNAVAILABLE', true, /shutting down/],
    ['57P03', 'STORE_UNAVAILABLE', true, /starting up/],
    ['25006', 'STORE_UNAVAILABLE', true, /read-only/],
    ['08006', 'STORE_UNAVAILABLE', true, /connection was lost/],
    ['08P01', 'STORE_UNAVAILABLE', true, /connection was lost/],
    ['ECONNREFUSED', 'STORE_UNAVAILABLE', true, /host and port/],
    ['ECONNRESET', 'STORE_UNAVAILABLE', true, /connection was lost/],
    ['ETIMEDOUT', 'STORE_UNAVAILABLE', true, /no answer/],
    ['EPIPE', 'STORE_UNAVAILABLE', true, /connection was lost/],
    ['ENOTFOUND', 'STORE_UNAVAILABLE', true, /host name/],
    ['57014', 'STORE_TIMEOUT', true, /cancelled/],
    ['55P03', 'STORE_TIMEOUT', true, /lock/],
    ['40001', 'STORE_CONFLICT', true, /rolled back/],
    ['40P01', 'STORE_CONFLICT', true, /deadlock/],
    ['42P01', 'SCHEMA_TOO_OLD', false, /table is missing: run `millrace migrate up`/],
    ['3F000', 'SCHEMA_TOO_OLD', false, /schema is missing: run `millrace migrate up`/],
    ['42883', 'SCHEMA_TOO_OLD', false, /function is missing or has other arguments: run `millrace migrate up`/],
    ['XX000', 'STORE_REFUSED', false, /refused the statement/],
  ] as const)('%s is %s', (from, code, retryable, message) => {
    const cause = failure(from)
    const error = storeError(cause, 'jobs.claim')
    expect(error).toMatchObject({ code, retryable, cause })
    expect(error.message).toMatch(/^jobs\.claim: .*\(said by the server\)$/)
    expect(error.message).toMatch(message)
  })

  test.each([
    ['timeout exceeded when trying to connect', 'STORE_UNAVAILABLE'],
    ['Connection terminated due to connection timeout', 'STORE_UNAVAILABLE'],
    ['Connection terminated unexpectedly', 'STORE_UNAVAILABLE'],
    ['Client has encountered a connection error and is not queryable', 'STORE_UNAVAILABLE'],
    ['Query read timeout', 'STORE_TIMEOUT'],
    ['SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be a string', 'STORE_REFUSED'],
    ['The server does not support SSL connections', 'STORE_REFUSED'],
    ['cached plan must not change result type', 'STORE_CONFLICT'],
  ] as const)('the words of the driver: %s', (message, code) => {
    expect(storeError(failure(undefined, message), 'x').code).toBe(code)
  })

  test('what is ours already stays as it is', () => {
    const own = new MillraceError('STOPPED', 'stopped')
    expect(storeError(own, 'x')).toBe(own)
  })

  test('the missing database is named, in any language of the server', () => {
    const english = storeError(failure('3D000', 'database "orders" does not exist'), 'x')
    const german = storeError(failure('3D000', 'Datenbank »orders« existiert nicht'), 'x')
    for (const { message } of [english, german]) expect(message).toContain('create database "orders"')
  })

  test('rows and values that the server quotes do not get through', () => {
    const broken = Object.assign(failure('23502', 'null value in column "x"'), {
      detail: 'Failing row contains (secret)',
    })
    const invalid = failure('22P02', 'invalid input syntax for type integer: "secret"')
    for (const error of [broken, invalid].map((one) => storeError(one, 'x'))) {
      expect(JSON.stringify([error.message, String(error.cause), { ...(error.cause as object) }])).not.toContain(
        'secret',
      )
      expect(error.details).toHaveProperty('sqlState')
    }
  })

  test('passwords do not get through', () => {
    for (const text of [
      'postgres://u:se:cr@et@host/db',
      'bad url postgresql://:secret@[::1]:5/db?x=1',
      'host=a password=secret',
    ]) {
      const { message } = storeError(failure(undefined, text), text)
      expect(message).not.toMatch(/secret|cr@et/)
      expect(message).toContain('***')
    }
    expect(withoutPasswords('postgres://u@host/db')).toBe('postgres://u@host/db')
  })

  test('a name of the network is no SQLSTATE', () => {
    expect(sqlStateOf(failure('EPIPE'))).toBeUndefined()
    expect(sqlStateOf(failure('40P01'))).toBe('40P01')
    expect(sqlStateOf(null)).toBeUndefined()
  })
})
