// The autoscaler as a service, over a fleet that is played: who leads, what is written, what outlives whom.
import { describe, expect, onTestFinished, test } from 'vitest'
import { MillraceError } from '../../src/core/errors.ts'
import type { Backend } from '../../src/store/ports.ts'
import { createAutoscaler } from '../../src/supervisor/autoscaler.ts'
import type { AutoscaleOptions } from '../../src/supervisor/autoscale-options.ts'
import { readPlan } from '../../src/supervisor/plan-notes.ts'
import { forceScale } from '../../src/supervisor/scaling-requests.ts'
import { readScalingHistory } from '../../src/supervisor/scaling-history.ts'
import { switchScaling } from '../../src/supervisor/scaling-switch.ts'
import { fakeFleet } from './fake-fleet.ts'
import type { FakeFleet } from './fake-fleet.ts'

const BURST = { size: { mail: 500 }, busy: 1, endedPerS: 10 }
const CALM = { size: { mail: 0 }, busy: 0, endedPerS: 0 }

function scaler(fleet: FakeFleet, options: AutoscaleOptions = {}, backend: Backend = fleet.backend) {
  const autoscaler = createAutoscaler({ runtime: fleet.runtime(), backend, options })
  onTestFinished(() => autoscaler.stop())
  return autoscaler
}

/** One host and one autoscaler at work. */
async function setup(options: AutoscaleOptions = {}) {
  const fleet = fakeFleet()
  const host = fleet.host('one')
  await host.start()
  const autoscaler = scaler(fleet, options)
  await autoscaler.start()
  onTestFinished(() => host.vanish())
  return { fleet, host, autoscaler }
}

async function planOf({ backend }: FakeFleet, pool = 'mail') {
  return (await readPlan(backend.notes, pool))?.plan
}

describe('steps', () => {
  test('P2 starts at the minimum, grows with the load to the maximum, and back, each step with its reasons', async () => {
    const { fleet, host } = await setup({ max: 5 })
    await fleet.clock.advance('30s')
    expect(await planOf(fleet)).toMatchObject({ total: 1, shares: { one: 1 } })
    Object.assign(fleet.load, BURST)
    await fleet.clock.advance('10m')
    expect(host.wanted()).toBe(5)
    Object.assign(fleet.load, CALM)
    await fleet.clock.advance('25m')
    expect(host.wanted()).toBe(1)
    expect(await fleet.lines()).toEqual(['35s 1→3', '335s 3→5', '640s 5→4', '940s 4→3', '1240s 3→2', '1540s 2→1'])
    const [last] = await readScalingHistory(fleet.backend.notes, { limit: 1, nowMs: fleet.clock.nowMs() })
    expect(last).toMatchObject({ queue: 'mail', pool: 'mail', action: 'down', from: 2, to: 1, metrics: { size: 0 } })
    expect(last?.reasons.join()).toContain('0 jobs are ready (fewer than 10)')
    const steps = fleet.logged.filter(({ fields }) => fields['action'] !== undefined)
    expect(steps).toHaveLength(6)
    expect(steps[0]?.message).toMatch(/^pool mail goes up from 1 to 3 because 500 jobs are ready \(more than 100\)/)
  })

  test('P2 a plan is stood by every 20 seconds, so that whoever follows it knows', async () => {
    const { fleet } = await setup()
    await fleet.clock.advance('60s')
    const before = await planOf(fleet)
    await fleet.clock.advance('30s')
    const after = await planOf(fleet)
    expect(after!.decidedAtMs - before!.decidedAtMs).toBeGreaterThanOrEqual(20_000)
    expect(after).toMatchObject({ total: 1, reasons: before!.reasons })
  })

  test('P2 metrics that are missing change nothing: silent workers, a store that does not answer', async () => {
    const { fleet, host } = await setup({ cooldown: '10s' })
    host.isSilent = true
    Object.assign(fleet.load, BURST)
    await fleet.clock.advance('5m')
    expect(host.wanted()).toBe(1)
    fleet.load.isDown = true
    host.isSilent = false
    await fleet.clock.advance('5m')
    expect(host.wanted()).toBe(1)
    expect(await fleet.lines()).toEqual([])
    fleet.load.isDown = false
    await fleet.clock.advance('40s')
    expect(host.wanted()).toBeGreaterThan(1)
  })

  test('P2 a store that takes long to count is asked less often, and is still followed', async () => {
    const { fleet, host } = await setup({ cooldown: '10s' })
    fleet.load.countMs = 4_000
    Object.assign(fleet.load, BURST)
    await fleet.clock.advance('3m')
    expect(host.wanted()).toBeGreaterThan(3)
    // The look that is under way ends before everything stops.
    fleet.load.countMs = 0
    await fleet.clock.advance('10s')
  })

  test('P2 a function of the user that fails holds the size and is told once', async () => {
    const decide = () => {
      throw new Error('no idea')
    }
    const { fleet, host } = await setup({ queues: { mail: { decide } } })
    Object.assign(fleet.load, BURST)
    await fleet.clock.advance('3m')
    expect(host.wanted()).toBe(1)
    expect(fleet.logged.filter(({ level }) => level === 'error')).toHaveLength(1)
  })

  test('P2 is switched off and on for all queues and for one, and in the configuration', async () => {
    const { fleet, host } = await setup({ cooldown: '10s', max: 3 })
    const { notes } = fleet.backend
    await switchScaling(notes, null, false)
    Object.assign(fleet.load, BURST)
    await fleet.clock.advance('2m')
    expect(host.wanted()).toBe(1)
    await switchScaling(notes, 'mail', false)
    await switchScaling(notes, null, true)
    await fleet.clock.advance('2m')
    expect(host.wanted()).toBe(1)
    await switchScaling(notes, 'mail', true)
    await fleet.clock.advance('20s')
    expect(host.wanted()).toBe(3)
    const off = await setup({ enabled: false, queues: { mail: { enabled: true } } })
    Object.assign(off.fleet.load, BURST)
    await off.fleet.clock.advance('2m')
    expect(off.host.wanted()).toBe(1)
  })
})

describe('hosts', () => {
  test('P2 two hosts share the total, one that vanishes loses its share at once, one that comes takes its part', async () => {
    const { fleet, host } = await setup({ cooldown: '20s', max: 7 })
    const two = fleet.host('two')
    await two.start()
    Object.assign(fleet.load, BURST)
    await fleet.clock.advance('3m')
    expect((await planOf(fleet))?.total).toBe(7)
    expect([host.wanted(), two.wanted()].sort()).toEqual([3, 4])
    await two.vanish()
    await fleet.clock.advance('25s')
    expect(await planOf(fleet)).toMatchObject({ total: 7, shares: { one: 7 } })
    const three = fleet.host('three')
    await three.start()
    await fleet.clock.advance('15s')
    expect(await planOf(fleet)).toMatchObject({ total: 7, shares: { one: 4, three: 3 } })
    await three.vanish()
  })

  test('P2 a host has room for what it says itself, not for what the leader has', async () => {
    const { fleet, host } = await setup({ cooldown: '10s', max: 15, up: { step: 5 } })
    const small = fleet.host('small', { processesMax: 2 })
    const large = fleet.host('large', { processesMax: 30, pools: { mail: { queues: ['mail'], max: 30 } } })
    for (const one of [small, large]) await one.start()
    Object.assign(fleet.load, BURST)
    await fleet.clock.advance('3m')
    expect([host.wanted(), small.wanted(), large.wanted()].sort()).toEqual([2, 6, 7])
    expect(small.wanted()).toBe(2)
    await host.vanish()
    await fleet.clock.advance('1m')
    expect(await planOf(fleet)).toMatchObject({ total: 15, shares: { small: 2, large: 13 } })
    for (const one of [small, large]) await one.vanish()
  })

  test('P2 pools compete for the processes of a supervisor, and what is pinned or fixed is not theirs', async () => {
    const fleet = fakeFleet()
    const pools = {
      a: { queues: ['a'] },
      b: { queues: ['b'] },
      fixed: { queues: ['c'], min: 4, max: 4 },
    }
    const host = fleet.host('one', { pools })
    await host.start()
    const autoscaler = scaler(fleet, { cooldown: '10s', up: { step: 4 } })
    await autoscaler.start()
    Object.assign(fleet.load, { size: { a: 500, b: 500, c: 0 }, busy: 1 })
    await fleet.clock.advance('4m')
    expect([host.wanted('a'), host.wanted('b'), host.wanted('fixed')]).toEqual([8, 8, 4])
    expect(await planOf(fleet, 'fixed')).toBeUndefined()
    expect((await planOf(fleet, 'a'))?.reasons.at(-1)).toBe('the hosts have room for 16 processes of all pools')
    host.pinned = true
    Object.assign(fleet.load, { size: { a: 0, b: 0, c: 0 }, busy: 0 })
    await fleet.clock.advance('2m')
    expect([host.wanted('a'), host.wanted('b')]).toEqual([8, 8])
    host.pinned = false
    await fleet.clock.advance('5s')
    expect(host.wanted('a')).toBeGreaterThanOrEqual(7)
    await host.vanish()
  })
})

describe('leaders and clocks', () => {
  test('P2 a new leader knows the cooldown of the old one', async () => {
    const { fleet, host, autoscaler } = await setup()
    const next = scaler(fleet)
    await next.start()
    await fleet.clock.advance('30s')
    Object.assign(fleet.load, BURST)
    await fleet.clock.advance('30s')
    expect(host.wanted()).toBe(3)
    expect([autoscaler.isLeading(), next.isLeading()]).toEqual([true, false])
    const { term } = (await planOf(fleet))!
    await autoscaler.stop()
    Object.assign(fleet.load, CALM)
    await fleet.clock.advance('4m')
    expect(next.isLeading()).toBe(true)
    expect((await planOf(fleet))!.term).toBeGreaterThan(term)
    expect(host.wanted()).toBe(3)
    await fleet.clock.advance('1m')
    expect(await fleet.lines()).toEqual(['35s 1→3', '338s 3→2'])
  })

  test.each([3_600_000, -3_600_000])('P2 wall clocks that jump by %d ms change nothing', async (jumpMs) => {
    const { fleet } = await setup()
    Object.assign(fleet.load, BURST)
    await fleet.clock.advance('60s')
    fleet.skew.processMs = jumpMs
    fleet.skew.storeMs = jumpMs
    Object.assign(fleet.load, CALM)
    await fleet.clock.advance('10m')
    expect(await fleet.lines()).toEqual(['5s 1→3', '305s 3→2', '605s 2→1'])
  })

  test('P2 a store whose clock was set back by a day holds a new leader for one cooldown, not for a day', async () => {
    const { fleet, host, autoscaler } = await setup()
    Object.assign(fleet.load, BURST)
    await fleet.clock.advance('60s')
    await autoscaler.stop()
    // Records of supervisors have no clock of their own; the plan outlives it because its expiry is later than ever.
    fleet.skew.storeMs = -86_400_000
    Object.assign(fleet.load, CALM)
    const next = scaler(fleet)
    await next.start()
    await fleet.clock.advance('290s')
    expect(host.wanted()).toBe(3)
    await fleet.clock.advance('30s')
    expect(host.wanted()).toBe(2)
  })

  test('P2 a plan whose reply was lost is found again: one step, one event', async () => {
    const fleet = fakeFleet()
    const host = fleet.host('one')
    await host.start()
    let lost = 0
    const { notes } = fleet.backend
    const flaky: Backend = {
      ...fleet.backend,
      notes: {
        ...notes,
        async put(write) {
          const version = await notes.put(write)
          if (write.space === 'scaling-plan' && write.value.includes('"total":3') && lost++ === 0) {
            throw new MillraceError('STORE_TIMEOUT', 'no answer', { retryable: true })
          }
          return version
        },
      },
    }
    await scaler(fleet, {}, flaky).start()
    Object.assign(fleet.load, BURST)
    await fleet.clock.advance('2m')
    expect(lost).toBeGreaterThan(0)
    expect(await fleet.lines()).toEqual(['5s 1→3'])
    expect(host.wanted()).toBe(3)
    await host.vanish()
  })
})

describe('force', () => {
  test('P2 a size is forced within the cooldown and within the limits, from any process, and then holds for a cooldown', async () => {
    const { fleet, host } = await setup({ max: 6 })
    Object.assign(fleet.load, BURST)
    await fleet.clock.advance('30s')
    expect(host.wanted()).toBe(3)
    const elsewhere = scaler(fleet, { max: 6 })
    await elsewhere.start()
    const forced = elsewhere.forceScale('mail', 99, 'the big sale', { by: 'ada' })
    await fleet.clock.advance('5s')
    expect(await forced).toEqual({ ok: true, pools: [{ pool: 'mail', from: 3, to: 6 }] })
    const [event] = await readScalingHistory(fleet.backend.notes, { limit: 1, nowMs: fleet.clock.nowMs() })
    expect(event).toMatchObject({ action: 'up', from: 3, to: 6, forcedBy: 'ada' })
    expect(event?.reasons).toEqual(['ada forces 99: the big sale', 'its limits make 6 of 99'])
    Object.assign(fleet.load, CALM)
    await fleet.clock.advance('4m')
    expect(host.wanted()).toBe(6)
    await fleet.clock.advance('65s')
    expect(host.wanted()).toBe(5)
  })

  test('P2 past the limits only if it is said, never past the hosts, and back to the limits after the cooldown', async () => {
    const { fleet, host, autoscaler } = await setup({ max: 3 })
    await fleet.clock.advance('10s')
    const forced = autoscaler.forceScale({ pool: 'mail' }, 40, 'incident', { beyondLimits: true })
    await fleet.clock.advance('5s')
    expect(await forced).toMatchObject({ ok: true, pools: [{ to: 15 }] })
    expect(host.wanted()).toBe(15)
    await fleet.clock.advance('6m')
    expect(host.wanted()).toBe(3)
  })

  test('P2 a request for nobody is refused, one that nobody reads says so, and bad ones are not written', async () => {
    const { fleet, autoscaler } = await setup()
    const refused = autoscaler.forceScale('post', 3, 'why not')
    await fleet.clock.advance('5s')
    expect(await refused).toMatchObject({
      ok: false,
      message: /no pool that can be scaled serves queue post; there are: mail/,
    })
    const parts = { notes: fleet.backend.notes, runtime: fleet.runtime() }
    await expect(forceScale(parts, { queue: 'mail' }, -1, 'x')).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    await expect(forceScale(parts, { queue: 'mail' }, 1, ' ')).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    await expect(forceScale(parts, { pool: 'a b' }, 1, 'x')).rejects.toMatchObject({ code: 'INVALID_NAME' })
    await autoscaler.stop()
    const alone = expect(autoscaler.forceScale('mail', 3, 'x')).rejects.toMatchObject({ code: 'WAIT_TIMEOUT' })
    await fleet.clock.advance('20s')
    await alone
  })
})
