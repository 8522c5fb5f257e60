// How often hints go from one process to the others. That they arrive is shown on real servers.
import { describe, expect, test } from 'vitest'
import { Doorbell } from '../../src/backends/postgres/doorbell.ts'
import { readyTopic } from '../../src/store/wakeups.ts'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'

const TOPIC = readyTopic('mails')

function setup() {
  const clock = new VirtualClock()
  /** When hints went by themselves, and when with a commit. */
  const sent: number[] = []
  const said: number[] = []
  const payloads: string[] = []
  const link = { answered: Promise.resolve() }
  const send = (payload: string): Promise<void> => {
    sent.push(clock.monoMs())
    payloads.push(payload)
    return link.answered
  }
  const doorbell = new Doorbell({ clock, self: 'me', send, onListeners: () => undefined })
  const insert = (): void => {
    if (doorbell.sayWith([TOPIC]) === null) doorbell.ring(TOPIC)
    else said.push(clock.monoMs())
  }
  const insertEvery = async (everyMs: number, times: number): Promise<void> => {
    for (let time = 0; time < times; time += 1) {
      insert()
      await clock.advance(everyMs)
    }
  }
  const insertMany = async (perMs: number, forMs: number): Promise<void> => {
    for (let ms = 0; ms < forMs; ms += 1) {
      for (let time = 0; time < perMs; time += 1) insert()
      await clock.advance(1)
    }
  }
  return { clock, doorbell, sent, said, payloads, link, insert, insertEvery, insertMany }
}

/** From now on sends wait for it. */
function answerOf(link: { answered: Promise<void> }): () => void {
  let answer = (): void => undefined
  link.answered = new Promise((resolve) => (answer = resolve))
  return () => answer()
}

describe('hints of one topic', () => {
  test('travel with the commit when they are rare', async () => {
    const { insertEvery, said, sent } = setup()
    await insertEvery(10, 10)
    expect([said.length, sent.length]).toEqual([10, 0])
  })

  test('go by themselves, at once, when they are less rare: commits that notify wait for each other', async () => {
    const { insertEvery, said, sent } = setup()
    await insertEvery(2, 500)
    expect([said, sent.length]).toEqual([[0], 499])
    expect(sent.slice(0, 3)).toEqual([2, 4, 6])
  })

  test('are one in a window when there are many, and go at once again when there are few', async () => {
    const { insertMany, insertEvery, sent } = setup()
    await insertMany(4, 250)
    expect(sent.length).toBeGreaterThanOrEqual(48)
    expect(sent.length).toBeLessThanOrEqual(52)
    const before = sent.length
    await insertEvery(2, 50)
    // One window is over before it is known that there are few.
    expect(sent.length - before).toBeGreaterThanOrEqual(47)
  })

  test('are all told in the end, within a window', async () => {
    const { insertMany, insert, sent, clock } = setup()
    await insertMany(3, 20)
    insert()
    const lastMs = clock.monoMs()
    await clock.advance('1s')
    expect(sent.at(-1)).toBeGreaterThanOrEqual(lastMs)
    expect(sent.at(-1)).toBeLessThanOrEqual(lastMs + 5)
  })

  test('go a millisecond after the one before, not at the end of the window', async () => {
    const { insert, sent, clock } = setup()
    insert()
    insert()
    await clock.advance('1s')
    expect(sent).toEqual([1])
  })

  test('are not merged for a window because a few came together', async () => {
    const { insert, sent, clock } = setup()
    for (let time = 0; time < 100; time += 1) {
      for (let together = 0; together < 3; together += 1) insert()
      await clock.advance(10)
    }
    // The first goes with its commit, the others share one a millisecond later.
    expect(sent.length).toBe(100)
    expect(new Set(sent.map((atMs) => atMs % 10))).toEqual(new Set([1]))
  })

  test('that wait go at the end of the process, once, and it waits for them', async () => {
    const { insert, sent, payloads, clock, doorbell, link } = setup()
    const answer = answerOf(link)
    insert()
    insert()
    let isOver = false
    const over = doorbell.finish().then(() => (isOver = true))
    await clock.advance(0)
    expect([payloads, isOver]).toEqual([[TOPIC], false])
    answer()
    await over
    await clock.advance('1s')
    expect(sent.length).toBe(1)
  })

  test('do not keep a process from ending, however long it goes on to ring or its store is silent', async () => {
    const { sent, clock, doorbell, link } = setup()
    for (let send = 0; send < 4; send += 1) {
      link.answered = new Promise((resolve) => clock.timer(2_000, resolve))
      doorbell.ring(readyTopic(`stuck-${send}`))
      await clock.advance(1)
    }
    doorbell.ring(TOPIC)
    let isOver = false
    void doorbell.finish().then(() => (isOver = true))
    // Beside those that are stuck.
    expect(sent.length).toBe(5)
    for (let time = 0; time < 500 && !isOver; time += 1) {
      link.answered = new Promise((resolve) => clock.timer(50, resolve))
      doorbell.ring(TOPIC)
      await clock.advance(5)
    }
    expect([isOver, clock.monoMs() <= 2_100]).toEqual([true, true])
  })

  test("that are refused take nobody's place", async () => {
    const { doorbell, payloads, clock, link } = setup()
    for (let time = 0; time < 20; time += 1) {
      link.answered = Promise.reject(new Error('a logger that throws'))
      doorbell.ring(TOPIC)
      await clock.advance(10)
    }
    expect(payloads.length).toBe(20)
  })

  test('of many topics go in as many parts as NOTIFY takes', async () => {
    const { doorbell, payloads, clock } = setup()
    const topics = Array.from({ length: 300 }, (_, index) => readyTopic(`queue-${'x'.repeat(50)}-${index}`))
    for (const topic of topics) doorbell.ring(topic)
    await clock.advance(1)
    expect(payloads.length).toBeGreaterThan(2)
    expect(Math.max(...payloads.map(({ length }) => length))).toBeLessThan(8000)
    expect(payloads.flatMap((payload) => payload.split('\n'))).toEqual(topics)
  })

  test('are told to nobody after the end', async () => {
    const { insert, sent, clock, doorbell } = setup()
    insert()
    insert()
    doorbell.close()
    await clock.advance('1s')
    expect(sent).toEqual([])
  })

  test('under way are bounded: what rings while the store does not answer is merged', async () => {
    const { doorbell, payloads, clock, link } = setup()
    const answer = answerOf(link)
    for (let time = 0; time < 20; time += 1) {
      for (const queue of ['mails', 'bills']) doorbell.ring(readyTopic(queue))
      await clock.advance(10)
    }
    expect(payloads.length).toBe(4)
    answer()
    await clock.advance(0)
    expect(payloads.slice(4)).toEqual(['ready:mails\nready:bills'])
  })
})
