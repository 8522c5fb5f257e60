// The one door of the command line to the Postgres and embedded backends; loaded only by commands that need
// them, so that `--help` stays quick. Tests pass their own.
import type { EmbeddedOptions, EmbeddedServer } from '../backends/embedded/start-embedded.ts'
import type { Migrator, MigratorOptions } from '../backends/postgres/migrate.ts'

export type OpenMigrator = (options: Pick<MigratorOptions, 'url' | 'schema' | 'logger'>) => Promise<Migrator>

export type StartEmbedded = (options: Pick<EmbeddedOptions, 'dir' | 'logger'>) => Promise<EmbeddedServer>

export const openMigrator: OpenMigrator = async (options) => {
  const { createMigrator } = await import('../backends/postgres/migrate.ts')
  return createMigrator(options)
}

export const startEmbedded: StartEmbedded = async (options) => {
  const embedded = await import('../backends/embedded/start-embedded.ts')
  return embedded.startEmbedded(options)
}
