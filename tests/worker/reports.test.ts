import { expect, test } from 'vitest'
import type { ClaimedJob, JobId, LeaseNumber, LogLine, WorkerId } from '../../src/core/job.ts'
import { ManualClock } from '../conformance/manual-clock.ts'
import { JobRun } from '../../src/worker/job-run.ts'
import { Reports, openReport } from '../../src/worker/reports.ts'

const line = (message: string): LogLine => ({ atMs: 0, attempt: 1, level: 'info', message })
const messages = (lines: readonly LogLine[] | undefined) => lines?.map(({ message }) => message)

function reporting() {
  const clock = new ManualClock()
  const reports = new Reports({ clock, onWaiting: () => undefined })
  const claimed = { id: 'a' as JobId, lease: 1 as LeaseNumber } as ClaimedJob // all that a report needs
  const run = new JobRun(claimed, undefined, 'w' as WorkerId, 0, () => undefined)
  run.state = 'running'
  const say = (message: string): void => {
    run.logLines = [...(run.logLines ?? []), line(message)]
    reports.add(run)
  }
  const take = () => reports.take(10).map(({ transition }) => transition)
  return { clock, reports, run, say, take }
}

test('what gathers travels as one report, numbered within the run', () => {
  const { run, say, take } = reporting()
  say('one')
  say('two')
  const [first] = take()
  expect(first).toMatchObject({ logFrom: 0, ifFree: true })
  expect(messages(first!.logLines)).toEqual(['one', 'two'])
  run.reportOut = undefined
  say('three')
  expect(take()).toMatchObject([{ logFrom: 2 }])
})

test('a run has one report under way, and what follows waits for its answer', () => {
  const { run, say, take } = reporting()
  say('one')
  expect(take()).toHaveLength(1)
  say('two')
  expect(take()).toEqual([])
  run.reportOut = undefined
  expect(take().map(({ logLines }) => messages(logLines))).toEqual([['two']])
})

test('a report that was lost goes again before what followed it, in order and with its numbers', () => {
  const { reports, run, say, take } = reporting()
  run.progress = '1'
  say('one')
  const [lost] = take()
  say('two')
  reports.takeBack(run, lost!)
  const [again] = take()
  expect(messages(again!.logLines)).toEqual(['one', 'two'])
  expect(again).toMatchObject({ logFrom: 0, progress: '1' })
})

test('newer progress is not replaced by that of a report that comes back', () => {
  const { reports, run, say, take } = reporting()
  run.progress = '1'
  say('one')
  const [lost] = take()
  run.progress = '2'
  reports.takeBack(run, lost!)
  expect(take()).toMatchObject([{ progress: '2' }])
})

test('a locked job is left alone for a while, however much its handler says', async () => {
  const { clock, reports, run, say, take } = reporting()
  say('one')
  reports.rest(run, take()[0]!)
  say('two')
  expect(take()).toEqual([])
  await clock.advance(100)
  expect(take().map(({ logLines }) => messages(logLines))).toEqual([['one', 'two']])
})

test('what a run that ends has left goes at once, and may wait for the lock as its end does', () => {
  const { reports, run, say, take } = reporting()
  say('one')
  reports.rest(run, take()[0]!)
  run.state = 'ended'
  reports.ended(run)
  const [last] = take()
  expect(messages(last!.logLines)).toEqual(['one'])
  expect(last!.ifFree).toBeUndefined()
})

test('a completion takes everything along that no answer confirms', () => {
  const { run, say, take } = reporting()
  say('one')
  take()
  say('two')
  const [open] = openReport(run)
  expect(messages(open!.logLines)).toEqual(['one', 'two'])
  expect(open).toMatchObject({ logFrom: 0 })
  expect(open!.ifFree).toBeUndefined()
})

test('no more are taken than asked for', () => {
  const { reports, say, take, run } = reporting()
  say('one')
  expect(reports.take(0)).toEqual([])
  expect(take()).toHaveLength(1)
  expect(run.reportOut).toBeDefined()
})
