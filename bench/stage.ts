// What a scenario plays on: a system opened in a fresh place, the database behind it if there is one, and
// as many workers as it asks for.
import { SYSTEMS } from './catalogue.ts'
import { forkedCrew, localCrew } from './crew.ts'
import type { Crew, CrewOptions } from './crew.ts'
import { Database } from './database.ts'
import type { ServerAddress } from './database.ts'
import type { Stage } from './scenario.ts'
import type { Aim, Place } from './system.ts'

export interface StageOptions {
  readonly system: string
  readonly backend: string
  readonly aim: Aim
  /** Absent where jobs live in memory. */
  readonly server: ServerAddress | undefined
}

export async function openStage(options: StageOptions): Promise<Stage> {
  const { server, backend, aim } = options
  const database = server && (await Database.create(server))
  const place: Place = { backend, aim, ...(database && { url: database.url }) }
  const system = await (await SYSTEMS[options.system]!.load()).open(place)
  const crews: Crew[] = []
  return {
    system,
    database,
    async crew(crewOptions: CrewOptions) {
      const crew = database ? await forkedCrew(options.system, place, crewOptions) : localCrew(system, crewOptions)
      crews.push(crew)
      return crew
    },
    another: () => openStage(options),
    async close() {
      await Promise.all(crews.map((crew) => crew.close()))
      await system.close()
      await database?.close()
    },
  }
}
