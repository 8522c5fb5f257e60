// Hints ring after a write took effect. They may be late or doubled; here the store is healthy, so none is lost.
import { expect } from 'vitest'
import { decideCancel } from '../../src/core/decide.ts'
import { CONFIG_TOPIC, SCHEDULED_TOPIC, controlTopic, finishedTopic, readyTopic } from '../../src/store/wakeups.ts'
import type { Topic } from '../../src/store/wakeups.ts'
import { completed, failed, released, retried } from './outcomes.ts'
import { QUEUE, after, eventually } from './world.ts'
import type { Setup, World } from './world.ts'

export function wakeups({ test }: Setup): void {
  test('D3 a job that becomes ready rings for its queue', async (world) => {
    const heard = listen(world, readyTopic(QUEUE))
    await world.addOne()
    await heard(readyTopic(QUEUE), 'an insert')
    const run = await (await world.worker()).claimOne()
    await world.apply(released(run))
    await heard(readyTopic(QUEUE), 'a release')
  })

  test('D3 a job that is promoted rings for its queue', async (world) => {
    await world.addOne({ delayMs: 100 })
    const heard = listen(world, readyTopic(QUEUE))
    await world.clock.advance(100)
    await world.jobs.promote(10)
    await heard(readyTopic(QUEUE), 'a promotion')
  })

  test('D3 a job whose gate opens rings for its queue', async (world) => {
    const parent = await world.addOne({ queue: 'other' })
    await world.addOne({ dependsOn: [after(parent)] })
    const run = await (await world.worker()).claimOne('other')
    const heard = listen(world, readyTopic(QUEUE))
    await world.apply(completed(run))
    await heard(readyTopic(QUEUE), 'the end of a parent')
  })

  test('D3 a job that ends rings for those who wait for it', async (world) => {
    const [one, two, three] = await world.add({}, {}, { delayMs: 5 })
    const heard = listen(world, finishedTopic(one!), finishedTopic(two!), finishedTopic(three!))
    const runs = await (await world.worker()).claim(2)
    await world.apply(completed(runs[0]!), failed(runs[1]!), decideCancel(three!, 'no')[0])
    for (const id of [one!, two!, three!]) await heard(finishedTopic(id), 'an ending')
  })

  test('D3 a batch that is finished rings for those who wait for it', async (world) => {
    const batch = await world.batch()
    const heard = listen(world, finishedTopic(batch))
    await world.addOne({ batch })
    await world.batches.seal(batch)
    await world.drain(await world.worker())
    await heard(finishedTopic(batch), 'the end of its last job')
  })

  test('D3 a command or a cancellation rings for its worker', async (world) => {
    await world.addOne()
    const worker = await world.worker()
    const run = await worker.claimOne()
    const heard = listen(world, controlTopic(worker.id))
    await world.apply(decideCancel(run.id, 'no')[1])
    await heard(controlTopic(worker.id), 'a cancellation')
    await world.workers.send(worker.id, { kind: 'quiet' })
    await heard(controlTopic(worker.id), 'a command')
  })

  test('D3 a configured queue rings for everybody', async (world) => {
    const heard = listen(world, CONFIG_TOPIC)
    await world.queues.configure(QUEUE, { paused: true })
    await heard(CONFIG_TOPIC, 'a pause')
  })

  test('D3 a job that is scheduled rings for the promoter', async (world) => {
    const heard = listen(world, SCHEDULED_TOPIC)
    await world.addOne({ delayMs: 100 })
    await heard(SCHEDULED_TOPIC, 'a delayed insert')
    await world.addOne()
    await world.apply(retried(await (await world.worker()).claimOne(), 100))
    await heard(SCHEDULED_TOPIC, 'a retry')
  })

  test('D3 the write is visible to whoever is woken by it', async (world) => {
    const worker = await world.worker()
    let claimed: Promise<number> | undefined
    const stop = world.wakeups.listen([readyTopic(QUEUE)], () => {
      claimed ??= worker.claim().then((runs) => runs.length)
    })
    await world.addOne()
    await eventually(() => claimed !== undefined, 'the hint')
    expect(await claimed).toBe(1)
    stop()
  })

  test('D3 listeners hear their topics only, and nothing after they stopped', async (world) => {
    const heard: string[] = []
    const others: Topic[] = []
    const stop = world.wakeups.listen([readyTopic(QUEUE)], () => heard.push('stopped'))
    const stopOthers = world.wakeups.listen([readyTopic('other')], (topic) => others.push(topic))
    stop()
    stop()
    const sentinel = listen(world, readyTopic(QUEUE))
    await world.addOne()
    await sentinel(readyTopic(QUEUE), 'the sentinel')
    expect(heard).toEqual([])
    expect(others).toEqual([])
    stopOthers()
  })

  test('D3 one listener that throws does not keep others from hearing', async (world) => {
    const stop = world.wakeups.listen([readyTopic(QUEUE)], () => {
      throw new Error('a broken listener')
    })
    const heard = listen(world, readyTopic(QUEUE))
    await world.addOne()
    await heard(readyTopic(QUEUE), 'an insert')
    stop()
  })
}

/** Waits for the next ring of a topic since the last wait for it. */
function listen(world: World, ...topics: readonly Topic[]): (topic: Topic, why: string) => Promise<void> {
  const rung = new Set<Topic>()
  world.wakeups.listen(topics, (topic) => rung.add(topic))
  return async (topic, why) => {
    await eventually(() => rung.has(topic), `${topic} after ${why}`)
    rung.delete(topic)
  }
}
