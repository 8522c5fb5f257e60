// What a supervisor takes for the word of a child. Handlers may use the same channel.
import { expect, test } from 'vitest'
import { isFromChild } from '../../src/supervisor/messages.ts'

const STATS = { workerIds: [], rssBytes: 1, cpuPercent: 2, loopLagMs: 3, processed: 4, failed: 5, running: 6 }

test.each<[unknown, boolean]>([
  [{ kind: 'hello' }, true],
  [{ kind: 'ready', workerIds: ['a'] }, true],
  [{ kind: 'stats', stats: STATS }, true],
  [{ kind: 'stats', stats: { ...STATS, ended: { mail: 2 } } }, true],
  [{ kind: 'draining', reason: 'SIGTERM' }, true],
  [{ kind: 'done', drained: true }, true],
  ['hello', false],
  [null, false],
  [{ kind: 'progress' }, false],
  [{ kind: 'ready' }, false],
  [{ kind: 'ready', workerIds: [1] }, false],
  [{ kind: 'stats', stats: 'many' }, false],
  [{ kind: 'stats', stats: { ...STATS, workerIds: undefined } }, false],
  [{ kind: 'stats', stats: { ...STATS, running: null } }, false],
  [{ kind: 'stats', stats: { ...STATS, ended: { mail: 'two' } } }, false],
  [{ kind: 'ready', workerIds: [], queues: 'mail' }, false],
  [{ kind: 'draining' }, false],
])('P1 %o is a word of a child: %s', (message, isOne) => {
  expect(isFromChild(message)).toBe(isOne)
})
