import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { JOB_STATUSES } from './job.ts'
import { checkKey } from './names.ts'
import { contentKey, holdsKey, type UniqueMode } from './unique.ts'

describe('D9 contentKey', () => {
  test('D9 is the SHA-256 of name, NUL and canonical JSON', () => {
    const expected = createHash('sha256').update('mail\0{"a":1,"b":[2]}').digest('hex')
    expect(contentKey('mail', { b: [2], a: 1 })).toBe(expected)
    expect(checkKey(expected, 'unique key')).toBe(expected)
  })

  test('D9 the name and the payload both matter, and text cannot move between them', () => {
    const name = fc.stringMatching(/^[A-Za-z0-9]{1,10}$/)
    fc.assert(
      fc.property(name, name, fc.string(), fc.string(), (nameA, nameB, payloadA, payloadB) => {
        fc.pre(nameA !== nameB || payloadA !== payloadB)
        expect(contentKey(nameA, payloadA)).not.toBe(contentKey(nameB, payloadB))
      }),
    )
  })
})

describe('D9 holdsKey', () => {
  test.each<[UniqueMode, string[]]>([
    ['until-started', ['scheduled', 'queued', 'blocked']],
    ['until-finished', ['scheduled', 'queued', 'blocked', 'dispatched', 'running']],
    ['for-a-time', []],
  ])('D9 %s holds the key in %j', (mode, statuses) => {
    expect(JOB_STATUSES.filter((status) => holdsKey(mode, status))).toEqual(statuses)
  })
})
