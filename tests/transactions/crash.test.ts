// A process that dies around the commit of its own completion: the job is done with its writes, or done again.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { defineJob } from '../../src/index.ts'
import { openPg } from './libraries.ts'
import { createMillDatabase } from './mill-database.ts'
import { START_MAX_MS } from './probe.ts'

const PROCESS = fileURLToPath(new URL('crash-process.ts', import.meta.url))

test.each([
  ['before the commit', 'the second run', ['of the second run'], ['expired', 'success']],
  ['after the commit', 'the first run', ['of the first run'], ['success']],
])('D11 a process that is killed %s', { timeout: START_MAX_MS }, async (moment, result, orders, attempts) => {
  const pay = defineJob({
    name: 'pay',
    async run({ completeWith }) {
      await library.transaction(async (tx) => {
        await library.own(tx, "insert into orders values ('of the second run')")
        await completeWith(tx, 'the second run')
      })
    },
  })
  const database = await createMillDatabase({ jobs: [pay] })
  const library = openPg(database.url)
  try {
    const handle = await database.mill.enqueue(pay)
    const child = spawn(process.execPath, ['--import', 'tsx', PROCESS, database.url, moment], { stdio: 'inherit' })
    expect(await once(child, 'exit')).toEqual([null, 'SIGKILL'])
    await database.mill.work({ heartbeat: '250ms', ttl: '2s' })
    expect(await handle.result({ timeout: '30s' })).toBe(result)
    expect(await database.orders()).toEqual(orders)
    expect((await database.mill.jobs.attempts(handle.id)).map(({ status }) => status)).toEqual(attempts)
  } finally {
    await library.close()
    await database.drop()
  }
})
