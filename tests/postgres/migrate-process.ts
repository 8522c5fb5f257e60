// A process that runs some migrators when it is told to, for the test with many of them.
import { createMigrator } from '../../src/backends/postgres/migrate.ts'
import { SMALL_SET } from './migrate-sets.ts'

const [, , url = '', count = '1'] = process.argv

process.once('message', () => {
  void Promise.all(Array.from({ length: Number(count) }, migrate))
    .then((results) => process.send?.(results))
    .finally(() => process.disconnect())
})
process.send?.('ready')

/** The steps it did itself, or what went wrong. */
async function migrate(): Promise<readonly string[] | string> {
  const migrator = createMigrator({ url, ...SMALL_SET })
  try {
    return (await migrator.up()).steps
  } catch (error) {
    return String(error)
  } finally {
    await migrator.close()
  }
}
