// `millrace why`: says in words why a job is where it is, and what to do about it.
import type { Command } from 'commander'
import { checkJobId } from '../../client/ids.ts'
import { jobNotFound } from '../../client/results.ts'
import { runs, teach } from '../command.ts'
import type { Cli } from '../command.ts'
import { jobLine } from '../job-text.ts'
import { withMill } from '../session.ts'
import { lines } from '../text.ts'
import { gatherFacts } from '../why-facts.ts'
import { explain } from '../why.ts'

export function addWhy(program: Command, cli: Cli): void {
  const command = program
    .command('why')
    .argument('<id>', 'of the job')
    .summary('says why a job is where it is')
    .description(
      'Says in words why a job is where it is: paused queue, no worker, a parent, a group, a slot, a rate, its time, more urgent jobs, a run that goes on, an error; and what to do about it.',
    )
  teach(command, {
    examples: [
      ['why 0197…', 'why does it not run'],
      ['why 0197… --json', 'with codes for a script'],
    ],
    exits: ['notFound'],
  })
  runs(cli, command, (flags, [id = '']) =>
    withMill(cli.parts, flags, async (session) => {
      const { mill, out } = session
      const job = await mill.jobs.get(id)
      if (job === null) throw jobNotFound(checkJobId(id))
      const reasons = explain(await gatherFacts(session, job, cli.parts.clock.nowMs()))
      const { name, queue, connection, status } = job
      out.show({ job: { id: job.id, name, queue, connection, status }, reasons }, () => {
        const text = reasons.map(({ says, fix }) => `  ${says}${fix === undefined ? '' : `\n    try: ${fix}`}`)
        return lines([jobLine(job), ...text].join('\n'))
      })
    }),
  )
}
