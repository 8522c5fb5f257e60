// The Redis database of one measurement, seen from the measured process: a number of its own on a server that was
// emptied before, asked for its memory, the commands it was sent and the processor time of the server.
import { setTimeout as pause } from 'node:timers/promises'
import { Redis } from 'ioredis'
import type { ServerAddress } from './database.ts'
import { callsIn, infoField } from './redis-info.ts'
import { serverCpuUs } from './server-cpu.ts'
import type { OpenSystem } from './system.ts'

/** Redis gives back the buffer of a client that was silent for two seconds, looking once a second. */
const QUIET_MS = 3500
const QUIET_MAX_MS = 30_000
const QUIET_POLL_MS = 100
/** Buffers of the question itself, and of clients that say they are alive. */
const NOISE_BYTES = 64 * 1024
const CALIBRATIONS = 3

let opened = 0

export class RedisDatabase {
  readonly url: string
  readonly #client: Redis
  readonly #serverPid: number
  /** Commands that were sent by the benchmark, not by what it measures. */
  #own = 0

  private constructor(url: string, serverPid: number) {
    this.url = url
    this.#serverPid = serverPid
    this.#client = new Redis(url, { lazyConnect: true })
  }

  /** The next number: a process that plays on two stages has a database for each. */
  static async open({ url, pid }: ServerAddress): Promise<RedisDatabase> {
    const place = new URL(url)
    place.pathname = String(opened++)
    const database = new RedisDatabase(place.href, pid)
    await database.#client.connect()
    return database
  }

  /** Since the server started, those called by scripts too, without those of the benchmark. */
  async commands(): Promise<number> {
    // The answer does not count its own question yet.
    const own = this.#own
    return callsIn(await this.#info('commandstats')) - own
  }

  /**
   * The same system, but what it asks the server to learn how many jobs are left is not counted as its work: the
   * benchmark wants to know. What one question costs is measured here, while nothing else goes on.
   */
  async excusing(system: OpenSystem): Promise<OpenSystem> {
    // The first question may also load a script.
    await system.unfinished()
    const costs: number[] = []
    for (let round = 0; round < CALIBRATIONS; round += 1) {
      const before = await this.commands()
      await system.unfinished()
      costs.push((await this.commands()) - before)
    }
    const cost = Math.min(...costs)
    return {
      ...system,
      unfinished: () => {
        this.#own += cost
        return system.unfinished()
      },
    }
  }

  /** Memory in use, after the buffers of the clients have been given back. */
  async usedBytes(): Promise<number> {
    const deadlineMs = performance.now() + QUIET_MAX_MS
    let settled = await this.#usedMemory()
    let sinceMs = performance.now()
    while (performance.now() - sinceMs < QUIET_MS) {
      if (performance.now() > deadlineMs) throw new Error('the memory of Redis does not come to rest')
      await pause(QUIET_POLL_MS)
      const now = await this.#usedMemory()
      if (Math.abs(now - settled) <= NOISE_BYTES) continue
      settled = now
      sinceMs = performance.now()
    }
    return this.#usedMemory()
  }

  serverCpuUs(): number | undefined {
    return serverCpuUs(this.#serverPid)
  }

  async close(): Promise<void> {
    await this.#client.quit()
  }

  async #usedMemory(): Promise<number> {
    return Number(infoField(await this.#info('memory'), 'used_memory'))
  }

  #info(section: string): Promise<string> {
    this.#own += 1
    return this.#client.info(section)
  }
}
