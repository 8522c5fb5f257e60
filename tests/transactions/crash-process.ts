// A worker that is killed between `completeWith` and the commit, or after it. Run by crash.test.ts with the url of a
// database and the moment.
import pg from 'pg'
import { createMillrace, defineJob, postgres } from '../../src/index.ts'
import type { RunContext } from '../../src/index.ts'

const [url = '', moment] = process.argv.slice(2)

const pay = defineJob({
  name: 'pay',
  async run({ completeWith }: RunContext<undefined>) {
    const client = new pg.Client(url)
    await client.connect()
    await client.query('begin')
    await client.query("insert into orders values ('of the first run')")
    await completeWith(client, 'the first run')
    if (moment === 'after the commit') await client.query('commit')
    process.kill(process.pid, 'SIGKILL')
    await new Promise(() => undefined)
  },
})

const mill = await createMillrace({ jobs: [pay], backend: postgres({ url, poolMax: 2 }) })
await mill.work({ heartbeat: '250ms', ttl: '2s' })
