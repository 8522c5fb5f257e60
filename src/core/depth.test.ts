// Depths of queues as values: what adds up, what fits into a note, what is no note.
import { describe, expect, test } from 'vitest'
import { decodeDepths, depthsOf, encodeDepths, sumDepths } from './depth.ts'

const look = (ready: number, running = 0, oldestReadyMs = 0) =>
  depthsOf([{ queue: 'mail', ready, running, oldestReadyMs }])

describe('depths', () => {
  test('O1 looks add up: sums for the mean, and the most; an empty queue is in none, and its look counts', () => {
    const sum = sumDepths([look(10, 2, 500), look(0), look(2, 1, 900)])
    const mail = { queue: 'mail', readySum: 12, readyMax: 10, runningSum: 3, oldestReadyMaxMs: 900 }
    expect(sum).toEqual({ looks: 3, queues: [mail] })
    expect(sumDepths([sum, sum])).toEqual({ looks: 6, queues: [{ ...mail, readySum: 24, runningSum: 6 }] })
    expect(sumDepths([])).toEqual({ looks: 0, queues: [] })
  })

  test('O1 a note comes back as it was, and of too many queues the deepest', () => {
    const sum = sumDepths([look(10, 2, 500), look(2)])
    expect(decodeDepths(encodeDepths(sum))).toEqual(sum)
    const queues = Array.from({ length: 2_000 }, (_, no) => ({
      queue: `${'q'.repeat(90)}${no}`,
      ready: no,
      running: 1,
      oldestReadyMs: 1,
    }))
    const text = encodeDepths(depthsOf(queues))
    expect(text.length).toBeLessThan(64 * 1024)
    const kept = decodeDepths(text)!.queues
    expect(kept.length).toBeGreaterThan(100)
    expect(kept[0]!.readyMax).toBe(1_999)
  })

  test.each(['nonsense', 'null', '[]', '{"looks":0,"queues":[]}', '{"looks":"1","queues":[]}', '{"looks":1}'])(
    'O1 %s is no note',
    (text) => {
      expect(decodeDepths(text)).toBeNull()
    },
  )

  test('O1 rows that are none are left out', () => {
    const text = '{"looks":1,"queues":[7,["a"],["b",1,1,0,"long"],["c",1,1,0,5]]}'
    expect(decodeDepths(text)?.queues.map(({ queue }) => queue)).toEqual(['c'])
  })
})
