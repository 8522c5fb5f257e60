// The text of a token says everything a worker needs, in one line.
import { expect, test } from 'vitest'
import type { JobId, NewJob } from '../../src/core/job.ts'
import type { JsonText } from '../../src/core/json.ts'
import { TOKEN_BODY_MAX } from '../../src/backends/hybrid/ports.ts'
import { readToken, refsIn, tokenOfMinted, tokenOfNew } from '../../src/backends/hybrid/token-text.ts'

const ID = '0190a000-0000-7000-8000-000000000001' as JobId
const FACTS = { lease: 7, nowMs: 1_000, priority: 50, maxAttempts: 3, lanes: [33, 66] } as const

function jobOf(payload: string, more: Partial<NewJob> = {}): NewJob {
  return { id: ID, queue: 'q', name: 'mail.send', payload: payload as JsonText, timeoutMs: 30_000, ...more }
}

test('what goes into a token comes out of it', () => {
  const more = { tags: ['a b', 'ü\n'], meta: { note: 'two\nlines' } }
  const { text } = tokenOfNew(jobOf('{"to":"é \\n"}', more as unknown as Partial<NewJob>), FACTS)
  expect(text).not.toContain('\n')
  const { field, job, needsBody } = readToken(text, 'q')
  expect([field, needsBody]).toEqual([`${ID}:7`, false])
  expect(job).toMatchObject({ id: ID, lease: 7, queue: 'q', name: 'mail.send', payload: '{"to":"é \\n"}', ...more })
  expect(job).toMatchObject({ priority: 50, maxAttempts: 3, timeoutMs: 30_000, enqueuedAtMs: 1_000, runAtMs: 1_000 })
})

test('a job of the relay keeps what it has been through', () => {
  const { job } = readToken(tokenOfNew(jobOf('1'), FACTS).text, 'q')
  // Put off to a moment before it was enqueued, as whoever enqueues may.
  const minted = { ...job, attemptCount: 2, crashCount: 1, runAtMs: 400, group: 'g', limitKey: 'k', rateLimited: true }
  expect(readToken(tokenOfMinted(minted, FACTS.lanes).text, 'q')).toEqual({
    field: `${ID}:7`,
    needsBody: false,
    job: minted,
  })
})

test('a payload that is long, or written in lines by somebody else, is read from PostgreSQL', () => {
  for (const payload of [`"${'x'.repeat(TOKEN_BODY_MAX)}"`, '{\n  "a": 1\n}']) {
    const { text } = tokenOfNew(jobOf(payload), FACTS)
    expect(text).not.toContain('\n')
    expect(readToken(text, 'q')).toMatchObject({ needsBody: true, job: { payload: '' } })
  }
})

test.each(['', 'oops', `${ID}:7`, `${ID}:7 50 0 0 3`, `${ID}:7 50 0 0 3 30000 1000 0 9 - mail.send {oops`])(
  'a text that nobody here has written is refused: %j',
  (text) => {
    expect(() => readToken(text, 'q')).toThrow()
  },
)

test('only a field that names a job and its lease is one', () => {
  const strange = ['', '#', 'oops', 'oops:7', `${ID}:`, `${ID}:x`, `${ID}:-1`, `${ID}:${'9'.repeat(30)}`]
  expect(refsIn([`${ID}:7`, ...strange])).toEqual([{ jobId: ID, lease: 7 }])
})
