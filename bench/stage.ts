// What a scenario plays on: a system opened in a fresh place, the databases behind it if there are any,
// and as many workers as it asks for.
import { SYSTEMS } from './catalogue.ts'
import { forkedCrew, localCrew } from './crew.ts'
import type { Crew, CrewOptions } from './crew.ts'
import { Database } from './database.ts'
import type { Order } from './child.ts'
import { RedisDatabase } from './redis-database.ts'
import type { Stage } from './scenario.ts'
import type { Aim, Place } from './system.ts'

export interface StageOptions {
  readonly system: string
  readonly backend: string
  readonly aim: Aim
  readonly servers: Pick<Order, 'postgres' | 'redis'>
}

export async function openStage(options: StageOptions): Promise<Stage> {
  const { servers, backend, aim } = options
  const database = servers.postgres && (await Database.create(servers.postgres))
  const redis = servers.redis && (await RedisDatabase.open(servers.redis))
  const place: Place = {
    backend,
    aim,
    ...(database && { url: database.url }),
    ...(redis && { redisUrl: redis.url }),
  }
  const own = await (await SYSTEMS[options.system]!.load()).open(place)
  const system = redis ? await redis.excusing(own) : own
  const crews: Crew[] = []
  return {
    system,
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
      await database?.close()
      await redis?.close()
    },
  }
}
