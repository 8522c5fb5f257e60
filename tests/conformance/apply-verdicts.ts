// What a verdict means, and that each transition of a call stands for itself.
import { expect } from 'vitest'
import { decideCancel, decideReport } from '../../src/core/decide.ts'
import { LIMITS } from '../../src/core/limits.ts'
import type { LogLine } from '../../src/core/job.ts'
import { dump } from './dump.ts'
import { completed, deferred, failed, released, retried, returned, snoozed } from './outcomes.ts'
import type { Setup } from './world.ts'

export function applyVerdicts({ test }: Setup): void {
  test('a verdict is given per transition, in order, and one refusal does not hurt the others', async (world) => {
    await world.add({}, {})
    const worker = await world.worker()
    const [one, two] = await worker.claim(2)
    const nowhere = { ...completed(one!), jobId: world.newId() }
    expect(await world.apply(completed(one!), nowhere, failed(one!), completed(two!))).toEqual([
      'applied',
      'missing',
      'stale',
      'applied',
    ])
  })

  test('transitions of one call are applied in order', async (world) => {
    await world.addOne()
    const run = await (await world.worker()).claimOne()
    const report = decideReport(run, { progress: '1' })
    expect(await world.apply(report, completed(run), report)).toEqual(['applied', 'applied', 'stale'])
    expect(await world.get(run.id)).toMatchObject({ status: 'completed', progress: '1' })
  })

  test('a transition for a job that does not exist is missing and leaves no trace', async (world) => {
    await world.addOne()
    const run = await (await world.worker()).claimOne()
    const before = await dump(world.backend)
    for (const transition of [completed(run), retried(run), ...decideCancel(run.id, 'no')]) {
      expect(await world.apply({ ...transition, jobId: world.newId() })).toEqual(['missing'])
    }
    expect(await dump(world.backend)).toEqual(before)
  })

  test('a guard on the status that does not hold is stale and leaves no trace', async (world) => {
    const id = await world.addOne()
    const before = await dump(world.backend)
    expect(await world.apply(decideCancel(id, 'no')[1])).toEqual(['stale'])
    expect(await dump(world.backend)).toEqual(before)
  })

  test('a decision with another ending for the same run is stale', async (world) => {
    await world.addOne()
    const run = await (await world.worker()).claimOne()
    await world.apply(completed(run, '1'))
    const before = await dump(world.backend)
    expect(await world.apply(failed(run), retried(run, 5), released(run))).toEqual(['stale', 'stale', 'stale'])
    expect(await dump(world.backend)).toEqual(before)
  })

  for (const [name, decide] of Object.entries({ retried, failed, snoozed: later, released, returned, deferred: put })) {
    test(`J9 a run that is ${name} after cancellation was asked for takes the alternative`, async (world) => {
      await world.addOne()
      const run = await (await world.worker()).claimOne()
      await world.apply(decideCancel(run.id, 'no')[1])
      expect(await world.apply(decide(run))).toEqual(['alternative'])
      expect(await world.get(run.id)).toMatchObject({ status: 'cancelled', cancelRequested: false })
      expect(await world.apply(decide(run))).toEqual(['already'])
    })
  }

  test('J9 a run that completes although cancellation was asked for stays completed', async (world) => {
    await world.addOne()
    const run = await (await world.worker()).claimOne()
    await world.apply(decideCancel(run.id, 'no')[1])
    expect(await world.apply(completed(run, '"done"'))).toEqual(['applied'])
    expect(await world.get(run.id)).toMatchObject({ status: 'completed', result: '"done"', cancelRequested: false })
  })

  test('an apply of nothing answers nothing', async (world) => {
    expect(await world.jobs.apply([])).toEqual([])
  })

  test('a thousand transitions go in one call', async (world) => {
    await world.add(...Array.from({ length: LIMITS.applyBatchMax }, () => ({})))
    const runs = await (await world.worker()).claim(LIMITS.claimBatchMax)
    const verdicts = await world.jobs.apply(runs.map((run) => completed(run)))
    expect(verdicts).toEqual(runs.map(() => 'applied'))
  })

  test('J8 a result and the last progress stay with the job', async (world) => {
    await world.addOne()
    const run = await (await world.worker()).claimOne()
    await world.apply(decideReport(run, { progress: '10' }), decideReport(run, { progress: '{"at":"half"}' }))
    expect((await world.get(run.id)).progress).toBe('{"at":"half"}')
    await world.apply(completed(run, '{"messageId":"m1"}'))
    expect(await world.get(run.id)).toMatchObject({ progress: '{"at":"half"}', result: '{"messageId":"m1"}' })
  })

  test('J8 log lines are kept in order, and a repeated report adds nothing', async (world) => {
    await world.addOne()
    const run = await (await world.worker()).claimOne()
    const lines = [1, 2, 3].map((no) => line(`line ${no}`, world.clock.nowMs() + no))
    await world.apply(decideReport(run, { logLines: lines.slice(0, 2), logFrom: 0 }))
    await world.apply(decideReport(run, { logLines: lines.slice(0, 2), logFrom: 0 }))
    await world.apply(decideReport(run, { logLines: lines, logFrom: 0 }))
    expect(await world.query.logs(run.id)).toEqual(lines)
  })

  test('J8 the last log lines go in one call with the end of the run, before it', async (world) => {
    await world.addOne()
    const run = await (await world.worker()).claimOne()
    const last = line('last words', world.clock.nowMs())
    const report = decideReport(run, { logLines: [last], logFrom: 0 })
    expect(await world.apply(report, completed(run))).toEqual(['applied', 'applied'])
    expect(await world.apply(report, completed(run))).toEqual(['stale', 'already'])
    expect(await world.query.logs(run.id)).toEqual([last])
  })

  test('J8 each run numbers its log lines from zero', async (world) => {
    await world.addOne()
    const worker = await world.worker()
    const first = await worker.claimOne()
    await world.apply(decideReport(first, { logLines: [line('first', 1)], logFrom: 0 }), retried(first))
    const second = await worker.claimOne()
    await world.apply(decideReport(second, { logLines: [line('second', 2, 2)], logFrom: 0 }))
    expect((await world.query.logs(first.id)).map(({ message, attempt }) => [message, attempt])).toEqual([
      ['first', 1],
      ['second', 2],
    ])
  })

  test('J8 at most a thousand log lines of a run are kept', async (world) => {
    await world.addOne()
    const run = await (await world.worker()).claimOne()
    const logLines = Array.from({ length: LIMITS.logLinesMax + 5 }, (_, index) => line(`line ${index}`, index))
    await world.apply(decideReport(run, { logLines, logFrom: 0 }))
    const kept = await world.query.logs(run.id)
    expect(kept).toHaveLength(LIMITS.logLinesMax)
    expect(kept[0]?.message).toBe('line 0')
  })
}

const later = (run: Parameters<typeof snoozed>[0]) => snoozed(run, 10)
const put = (run: Parameters<typeof deferred>[0]) => deferred(run, 10)

function line(message: string, atMs: number, attempt = 1): LogLine {
  return { atMs, attempt, level: 'info', message }
}
