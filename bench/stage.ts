// What a scenario plays on: a system opened in a fresh place, the databases behind it if there are any,
// and as many workers as it asks for.
import { SYSTEMS } from './catalogue.ts'
import { forkedCrew, localCrew } from './crew.ts'
import type { Crew, CrewOptions } from './crew.ts'
import { Database } from './database.ts'
import { forkLink } from './forked-link.ts'
import type { Order } from './child.ts'
import { RedisDatabase } from './redis-database.ts'
import type { Scenario, Stage } from './scenario.ts'
import { payloadMaker } from './system.ts'
import type { Place } from './system.ts'

export interface StageOptions {
  readonly system: string
  readonly backend: string
  readonly scenario: Pick<Scenario, 'aim' | 'bodyBytes' | 'addedMs' | 'isUnset'>
  readonly servers: Pick<Order, 'postgres' | 'redis'>
}

export async function openStage(options: StageOptions): Promise<Stage> {
  const { servers, backend, scenario } = options
  const database = servers.postgres && (await Database.create(servers.postgres))
  const redis = servers.redis && (await RedisDatabase.open(servers.redis))
  // The benchmark itself asks the servers directly.
  const urls = [database?.url, redis?.url].flatMap((url) => url ?? [])
  const link = scenario.addedMs === undefined ? undefined : await forkLink(urls, scenario.addedMs)
  const reached = (url: string): string => link?.urlOf(url) ?? url
  const place: Place = {
    backend,
    aim: scenario.aim,
    ...(scenario.isUnset && { isUnset: true }),
    ...(database && { url: reached(database.url) }),
    ...(redis && { redisUrl: reached(redis.url) }),
  }
  const own = await (await SYSTEMS[options.system]!.load()).open(place)
  const system = redis ? await redis.excusing(own) : own
  const crews: Crew[] = []
  return {
    system,
    payload: payloadMaker(scenario.bodyBytes),
    link,
    database,
    redis,
    async crew(crewOptions: CrewOptions) {
      const crew =
        database || redis ? await forkedCrew(options.system, place, crewOptions) : localCrew(system, crewOptions)
      crews.push(crew)
      return crew
    },
    another: () => openStage(options),
    async close() {
      await Promise.all(crews.map((crew) => crew.close()))
      await system.close()
      await link?.close()
      await database?.close()
      await redis?.close()
    },
  }
}
