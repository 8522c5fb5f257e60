// The trace context in the metadata of a job: invisible, and in nobody's way.
import { describe, expect, test } from 'vitest'
import { carriedIn, checkMetaKeys, userMeta, withCarried } from './carried.ts'

const carried = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' }

describe('carried', () => {
  test('O1 what is carried comes back, and the user sees his own metadata alone', () => {
    for (const meta of ['{"a":1}', '{}', undefined]) {
      const text = withCarried(meta, carried)
      expect(carriedIn(text)).toEqual(carried)
      expect(userMeta(text)).toEqual(meta === '{"a":1}' ? { a: 1 } : null)
    }
    expect(userMeta('{"a":1}')).toEqual({ a: 1 })
    expect([carriedIn(null), carriedIn('{"a":1}'), userMeta(null)]).toEqual([null, null, null])
  })

  test('O1 what is carried is bounded, and what somebody else wrote under the key does no harm', () => {
    const text = withCarried(undefined, { ...carried, tracestate: 'x'.repeat(513) })
    expect(carriedIn(text)).toEqual(carried)
    expect(carriedIn('{"$millrace":{"traceparent":7,"a":"b"}}')).toEqual({ a: 'b' })
    for (const odd of ['{"$millrace":3}', '["$millrace"]', '"\\"$millrace\\""']) expect(carriedIn(odd)).toBeNull()
  })

  test('O1 the key is refused when a user gives it', () => {
    expect(() => checkMetaKeys({ $millrace: {} })).toThrow(/reserved/)
    expect(() => checkMetaKeys({ millrace: {} })).not.toThrow()
  })
})
