// `node --import tsx tests/chaos/main.ts [--times N] [--scenario a,b] [--backend hybrid|postgres] [--gone-ms N]
// [--json FILE]`: every fault, N times, with a table. Exit 1 when a run was not as promised.
import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { play } from './play.ts'
import { SCENARIOS } from './scenarios.ts'
import { startServers } from './stage.ts'
import type { Verdict } from './verdict.ts'

const { values } = parseArgs({
  options: {
    times: { type: 'string', default: '10' },
    scenario: { type: 'string' },
    'gone-ms': { type: 'string', default: '30000' },
    jobs: { type: 'string', default: '500' },
    backend: { type: 'string', default: 'hybrid' },
    json: { type: 'string' },
  },
})
const names = values.scenario?.split(',')
const chosen = SCENARIOS.filter(({ name }) => names === undefined || names.includes(name))
if (chosen.length === 0) throw new Error(`scenarios: ${SCENARIOS.map(({ name }) => name).join(', ')}`)

const servers = await startServers()
const cells: (Verdict & { readonly scenario: string })[] = []
try {
  for (const scenario of chosen) {
    for (let round = 0; round < Number(values.times); round++) {
      const verdict = await play(servers, scenario, {
        backend: values.backend === 'postgres' ? 'postgres' : 'hybrid',
        goneMs: Number(values['gone-ms']),
        jobs: Number(values.jobs),
      })
      cells.push({ scenario: scenario.name, ...verdict })
      process.stdout.write(`${scenario.name.padEnd(26)} ${JSON.stringify(verdict)}\n`)
    }
  }
} finally {
  await servers.close()
}
if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify({ cells }, null, 2)}\n`)
const failed = cells.filter(({ ok }) => !ok).length
process.stdout.write(`${cells.length - failed} as promised, ${failed} not\n`)
process.exitCode = failed > 0 ? 1 : 0
