// Hints over a real Redis: heard by every process, nobody pays for what nobody listens to, everybody is rung after a
// lost connection.
import { beforeAll, describe, expect, test } from 'vitest'
import { redisKeys } from '../../src/backends/redis/keys.ts'
import type { RedisKeys } from '../../src/backends/redis/keys.ts'
import { RedisWakeups } from '../../src/backends/redis/wakeups.ts'
import type { JobId } from '../../src/core/job.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { silentLogger } from '../../src/runtime/logger.ts'
import { CONFIG_TOPIC, finishedTopic, readyTopic } from '../../src/store/wakeups.ts'
import type { Topic } from '../../src/store/wakeups.ts'
import type { RedisProcess } from '../support/redis-server.ts'
import { newName, until, useRedis } from './support.ts'

const redis = useRedis()
let server: RedisProcess

beforeAll(async () => {
  server = await redis.server()
})

async function setup({ prefix = newName(), url = server.url } = {}) {
  const name = newName()
  const link = redis.link({ url }, { name })
  await link.connect()
  const keys: RedisKeys = redisKeys(prefix)
  const wakeups = new RedisWakeups({ link, keys, clock: systemClock, logger: silentLogger })
  redis.onEnd(async () => wakeups.close())
  await wakeups.start()
  const heard: Topic[] = []
  const listen = (...topics: readonly Topic[]) => wakeups.listen(topics, (topic) => heard.push(topic))
  const clients = async () => String(await server.command('CLIENT', 'LIST')).split('\n')
  return { prefix, keys, wakeups, heard, listen, link, name, clients }
}

const ID = '019f0000-0000-7000-8000-000000000001' as JobId
const READY = readyTopic('mail')

describe('hints', () => {
  test('several topics of one message reach those who listen to them, in every process', async () => {
    const [one, two] = [await setup(), await setup()]
    const other = await setup({ prefix: one.prefix })
    one.listen(READY, CONFIG_TOPIC)
    other.listen(CONFIG_TOPIC)
    two.listen(CONFIG_TOPIC)
    await server.command('PUBLISH', one.keys.bell, `${READY}\nready:else\nconfig`)
    await until(() => one.heard.length === 2 && other.heard.length === 1, 'the hints')
    expect(one.heard).toEqual([READY, CONFIG_TOPIC])
    expect(two.heard).toEqual([])
  })

  test('one subscriber connection serves all topics of a process', async () => {
    const { listen, clients, name } = await setup()
    listen(READY, CONFIG_TOPIC, finishedTopic(ID))
    listen(readyTopic('other'))
    const own = (await clients()).filter((line) => line.includes(`name=${name}:`))
    expect(own.map((line) => /name=\S+:(\w+) /.exec(line)?.[1]).sort()).toEqual(['calls', 'messages'])
  })

  test('who stopped hears nothing', async () => {
    const { listen, heard, keys } = await setup()
    const stop = listen(READY)
    listen(CONFIG_TOPIC)
    stop()
    stop()
    await server.command('PUBLISH', keys.bell, `${READY}\nconfig`)
    await until(() => heard.length > 0, 'the other')
    expect(heard).toEqual([CONFIG_TOPIC])
  })
})

describe('what is asked of the store', () => {
  test('a listener of a queue parks it, and again when it was rung', async () => {
    const { listen, heard, keys } = await setup()
    const parked = keys.queue('mail', 'parked')
    expect(await server.command('EXISTS', parked)).toBe(0)
    const stop = listen(READY)
    await until(async () => (await server.command('EXISTS', parked)) === 1, 'the mark')
    for (let round = 1; round <= 3; round++) {
      await server.command('DEL', parked)
      await server.command('PUBLISH', keys.bell, READY)
      await until(() => heard.length === round, 'the hint')
      await until(async () => (await server.command('EXISTS', parked)) === 1, 'the mark again')
    }
    stop()
    await server.command('DEL', parked)
    await server.command('PUBLISH', keys.bell, READY)
    await until(async () => (await server.command('PUBLISH', keys.bell, 'config')) === 1, 'a second message')
    expect(await server.command('EXISTS', parked)).toBe(0)
  })

  test('the ends of jobs are asked for while somebody awaits one, and only then', async () => {
    const { listen, heard, keys } = await setup()
    listen(READY)
    expect(await server.command('EXISTS', keys.watchers)).toBe(0)
    expect(await server.command('PUBLISH', keys.ends, 'x')).toBe(0)
    listen(finishedTopic(ID))
    // Rung once when it is heard: the job may have ended before.
    await until(() => heard.includes(finishedTopic(ID)), 'the first look')
    expect(Number(await server.command('PTTL', keys.watchers))).toBeGreaterThan(5_000)
    await server.command('PUBLISH', keys.ends, `other\n${ID}`)
    await until(() => heard.filter((topic) => topic === finishedTopic(ID)).length === 2, 'the end')
  })
})

describe('trouble', () => {
  test('after a lost connection everybody is rung once, and hears what follows', async () => {
    const { listen, heard, keys, clients, name } = await setup()
    listen(READY, CONFIG_TOPIC)
    listen(finishedTopic(ID))
    await until(() => heard.length === 1, 'the first look')
    heard.length = 0
    for (const line of (await clients()).filter((one) => one.includes(`name=${name}:messages`))) {
      await server.command('CLIENT', 'KILL', 'ID', /id=(\d+)/.exec(line)?.[1] ?? '')
    }
    await until(() => heard.length >= 3, 'the rings')
    expect(heard.toSorted()).toEqual([CONFIG_TOPIC, finishedTopic(ID), READY].sort())
    await server.command('PUBLISH', keys.bell, 'config')
    await until(() => heard.length === 4, 'a hint')
  })

  test('a restart of the server is survived', async () => {
    const own = await redis.server()
    const { listen, heard, keys } = await setup({ url: own.url })
    listen(CONFIG_TOPIC)
    await own.restart()
    await until(() => heard.length === 1, 'the ring')
    await own.command('PUBLISH', keys.bell, 'config')
    await until(() => heard.length === 2, 'a hint')
  })

  test('a listener that throws keeps nobody from hearing', async () => {
    const { listen, wakeups, heard, keys } = await setup()
    wakeups.listen([CONFIG_TOPIC], () => {
      throw new Error('a broken listener')
    })
    listen(CONFIG_TOPIC)
    await server.command('PUBLISH', keys.bell, 'config')
    await until(() => heard.length === 1, 'the hint')
  })

  test('a user who may not listen or ring is refused at the start', async () => {
    await server.command('ACL', 'SETUSER', 'deaf', 'on', '>word', '~*', '+@all', 'resetchannels')
    const url = server.url.replace('//', '//deaf:word@')
    await expect(setup({ url })).rejects.toMatchObject({ code: 'STORE_REFUSED', message: /permission/ })
  })
})
