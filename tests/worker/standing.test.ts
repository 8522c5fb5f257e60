// The worker's side of claims that stand: what is heard, missed, fenced and withdrawn.
import { expect, test } from 'vitest'
import type { ClaimedJob, WorkerId } from '../../src/core/job.ts'
import { DEFAULTS } from '../../src/core/limits.ts'
import { createRuntime } from '../../src/runtime/runtime.ts'
import type { HandOver, OnBack } from '../../src/store/hand-overs.ts'
import { Standing } from '../../src/worker/standing.ts'
import { ManualClock } from '../conformance/manual-clock.ts'

const [ONE, TWO] = ['one', 'two'] as unknown as readonly [WorkerId, WorkerId] // ids as given

/** A life whose hand-overs are heard, unless nobody can listen. */
async function setup(listening: Promise<void> = Promise.resolve(), listeningAgain = listening) {
  const clock = new ManualClock()
  const seen = { got: [] as string[], doubts: 0, opens: 0, held: 0, stopped: 0, listens: 0 }
  const ears = new Map<WorkerId, (handOver: HandOver) => void>()
  const lost = new Map<WorkerId, OnBack>()
  const standing = new Standing({
    runtime: createRuntime({ clock }),
    handOvers: {
      async listen(worker, onHandOver, onBack) {
        await (seen.listens++ === 0 ? listening : listeningAgain)
        ears.set(worker, onHandOver)
        lost.set(worker, onBack)
        return () => void (seen.stopped += 1)
      },
    },
    slots: { hold: () => void (seen.held += 1), letGo: () => void (seen.held -= 1) },
    onJobs: (jobs) => void seen.got.push(...jobs.map(({ id }) => id)),
    onOpen: () => void (seen.opens += 1),
    onDoubt: () => void (seen.doubts += 1),
  })
  const isFirstAllowed = standing.stand(ONE)
  await clock.advance(0)
  const tell = (claimNo: number, before: number, worker = ONE): void =>
    ears.get(worker)!({ claimNo, before, jobs: [{ id: `job ${claimNo}` } as ClaimedJob] }) // its id is all that counts
  return {
    clock,
    standing,
    seen,
    isFirstAllowed,
    tell,
    cutOff: () => lost.get(ONE)!('connected'),
    puzzle: () => lost.get(ONE)!('in-doubt'),
  }
}

test('a claim stands only once its hand-overs can be heard', async () => {
  const { standing, seen, isFirstAllowed } = await setup()
  expect([isFirstAllowed, seen.opens, standing.stand(ONE)]).toEqual([false, 1, true])
})

test('where nobody can listen claims do not stand, and the worker goes on', async () => {
  const { standing, seen } = await setup(Promise.reject(new Error('no permission')))
  expect([standing.stand(ONE), seen.opens, seen.doubts]).toEqual([false, 0, 0])
})

test('a life that could not listen at first tries again, and its claims stand then', async () => {
  const { clock, standing, seen } = await setup(Promise.reject(new Error('not connected yet')), Promise.resolve())
  expect([standing.stand(ONE), seen.listens]).toEqual([false, 1])
  await clock.advance(5_000)
  expect([standing.stand(ONE), seen.opens, seen.listens]).toEqual([true, 1, 2])
})

test('a life that is over does not try to listen again', async () => {
  const { clock, standing, seen } = await setup(Promise.reject(new Error('not connected yet')))
  standing.stop()
  await clock.advance(20_000)
  expect(seen.listens).toBe(1)
})

test('a hand-over that comes twice is taken once', async () => {
  const { seen, tell } = await setup()
  tell(1, 0)
  tell(1, 0)
  tell(4, 1)
  expect(seen).toMatchObject({ got: ['job 1', 'job 4'], doubts: 0 })
})

test('a hand-over that was lost is missed by the next one', async () => {
  const { seen, tell } = await setup()
  tell(1, 0)
  tell(5, 3)
  expect(seen).toMatchObject({ got: ['job 1', 'job 5'], doubts: 1 })
})

test('a hand-over that was lost is missed by the next claim, when there was time for it to come', async () => {
  const { clock, standing, seen, tell } = await setup()
  tell(1, 0)
  standing.told(ONE, 1)
  await clock.advance(DEFAULTS.handOverLateMs)
  expect(seen.doubts).toBe(0)
  standing.told(ONE, 3)
  await clock.advance(DEFAULTS.handOverLateMs - 1)
  expect(seen.doubts).toBe(0)
  await clock.advance(1)
  expect(seen.doubts).toBe(1)
})

test('one that is lost while another is only late is missed too', async () => {
  const { clock, standing, seen, tell } = await setup()
  standing.told(ONE, 5)
  tell(5, 0)
  standing.told(ONE, 7)
  await clock.advance(DEFAULTS.handOverLateMs * 2)
  expect(seen).toMatchObject({ got: ['job 5'], doubts: 1 })
})

test('after a message was lost claims stand no more until the connection is new', async () => {
  const { standing, tell, cutOff } = await setup()
  tell(5, 3)
  expect([standing.isHeard, standing.stand(ONE)]).toEqual([false, false])
  cutOff()
  expect([standing.isHeard, standing.stand(ONE)]).toEqual([true, true])
})

test('a message that says nothing certain makes the worker look, and does not make a deaf one hear', async () => {
  const { standing, seen, tell, puzzle } = await setup()
  puzzle()
  expect([standing.isHeard, seen.doubts]).toEqual([true, 1])
  tell(5, 3)
  puzzle()
  expect([standing.isHeard, seen.doubts]).toEqual([false, 3])
})

test('a hand-over that is only late is not missed', async () => {
  const { clock, standing, seen, tell } = await setup()
  standing.told(ONE, 3)
  await clock.advance(DEFAULTS.handOverLateMs - 1)
  tell(3, 0)
  await clock.advance(DEFAULTS.handOverLateMs)
  expect(seen).toMatchObject({ got: ['job 3'], doubts: 0 })
})

test('what comes after a look was given back and does not start', async () => {
  const { standing, seen, tell } = await setup()
  standing.looked(ONE, 4)
  tell(3, 0)
  tell(6, 3)
  expect(seen).toMatchObject({ got: ['job 6'], doubts: 0 })
})

test('the store that comes back is asked what it has handed over', async () => {
  const { seen, cutOff } = await setup()
  cutOff()
  expect(seen.doubts).toBe(1)
})

test('until a claim is withdrawn something counts as held, once', async () => {
  const { standing, seen } = await setup()
  standing.withdraw()
  expect(seen).toMatchObject({ held: 0, doubts: 0 })
  standing.stand(ONE)
  standing.withdraw()
  standing.stand(ONE)
  standing.withdraw()
  expect(seen).toMatchObject({ held: 1, doubts: 2 })
  standing.looked(ONE, 9)
  expect(seen.held).toBe(1)
  standing.givenBack()
  standing.givenBack()
  expect(seen.held).toBe(0)
})

test('a life that is over hears nothing, holds nothing and doubts nothing any more', async () => {
  const { clock, standing, seen, tell, cutOff } = await setup()
  standing.stand(ONE)
  standing.withdraw()
  standing.told(ONE, 7)
  expect(standing.stand(TWO)).toBe(false)
  await clock.advance(DEFAULTS.handOverLateMs)
  tell(7, 0, ONE)
  cutOff()
  expect(seen).toMatchObject({ got: [], doubts: 1, held: 0, stopped: 1 })
  tell(1, 0, TWO)
  expect(seen.got).toEqual(['job 1'])
})

test('a listener that arrives after the life is over is ended', async () => {
  let listen: (() => void) | undefined
  const { clock, standing, seen } = await setup(new Promise<void>((resolve) => (listen = resolve)))
  standing.stop()
  listen!()
  await clock.advance(0)
  expect([seen.stopped, seen.opens]).toEqual([1, 0])
})
