// The SQL that this package brings: embedded as it is on disk, applied and taken back whole.
import { describe, expect, test } from 'vitest'
import { EMBEDDED_SQL } from '../../scripts/embed-sql.ts'
import { createMigrator } from '../../src/backends/postgres/migrate.ts'
import { ROLES, renderGrants, roleName } from '../../src/backends/postgres/roles.ts'
import { exists, readText } from '../tidy/source.ts'
import { leftIn, migrationTests } from './migrate-support.ts'

test(`${EMBEDDED_SQL.path} is what \`npm run generate\` writes`, () => {
  const { path, render } = EMBEDDED_SQL
  // Not compared as text: the difference of two such lines helps nobody.
  expect(exists(path) && readText(path) === render() ? 'the same' : 'differs: run `npm run generate`').toBe('the same')
})

describe.each([await migrationTests(18), await migrationTests(15)])('PostgreSQL $server.version', ({ setup, ends }) => {
  test('J11 the schema of this package goes up and down and leaves nothing', async () => {
    const { url, client } = await setup()
    const migrator = createMigrator({ url, schema: 'jobs_here' })
    ends.push(() => migrator.close())
    await migrator.up()
    expect(await migrator.status()).toMatchObject({ pending: [], functions: 'current', drift: [] })
    await migrator.up(undefined, { functions: true })
    expect(await migrator.status()).toMatchObject({ functions: 'current', drift: [] })
    await migrator.down(0)
    expect(await leftIn(client)).toEqual([])
    await client.query(migrator.sql('up'))
    expect(await migrator.status()).toMatchObject({ pending: [], functions: 'current', drift: [] })
    await client.query(migrator.sql('down'))
    expect(await leftIn(client)).toEqual([])
  })

  test('J11 the grants of this package fit its schema', async () => {
    const { url, client } = await setup()
    const migrator = createMigrator({ url })
    ends.push(() => migrator.close())
    await migrator.up()
    const warnings: string[] = []
    client.on('notice', ({ severity, message }) => void (severity === 'WARNING' && warnings.push(message ?? '')))
    ends.push(async () => {
      for (const role of ROLES)
        await client.query(`drop owned by ${roleName('own', role)}; drop role ${roleName('own', role)}`)
    })
    await client.query(renderGrants({ prefix: 'own' }))
    expect(warnings.filter((warning) => warning.startsWith('nothing'))).toEqual([])
    await client.query('set role own_viewer')
    expect(await client.query('select * from millrace.jobs')).toMatchObject({ rows: [] })
    await expect(client.query('select * from millrace.job_bodies')).rejects.toMatchObject({ code: '42501' })
    await client.query('reset role')
  })
})
