// `millrace dev`: a database, a worker and your jobs with one command, and one line that says how it goes.
import type { Command } from 'commander'
import { runs, teach } from '../command.ts'
import type { Cli } from '../command.ts'
import { createLogLines } from '../log-lines.ts'
import { openMill, outputOf } from '../session.ts'
import type { OpenedMill } from '../session.ts'
import { readSettings } from '../settings.ts'
import type { Settings } from '../settings.ts'
import { createStatusLine } from '../status-line.ts'
import { runWorker } from '../worker-run.ts'
import { maskUrls } from '../mask.ts'
import { deadlineOf, reportDocument, workOf, workOptions } from './work.ts'
import type { WorkFlags } from './work.ts'

export function addDev(program: Command, cli: Cli): void {
  const command = program
    .command('dev')
    .summary('database, worker and jobs with one command, for development')
    .description(
      'Starts a PostgreSQL of its own (or uses the store you named), runs a worker with the jobs of your configuration, and shows each job as it goes. The data stays in .millrace/ for the next time.',
    )
  workOptions(command).option('--show-url', 'print the URL of the database with its password')
  teach(command, {
    examples: [
      ['dev', 'Ctrl-C stops it'],
      ['dev --show-url', 'for psql and the like'],
    ],
    exits: ['timedOut'],
  })
  runs<WorkFlags & { readonly showUrl?: boolean }>(cli, command, async (flags) => {
    const { io, clock, load } = cli.parts
    const out = outputOf(cli.parts, flags)
    const asked = await readSettings(io, flags, { jobs: 'dev', embedded: true }, load)
    const deadlineMs = deadlineOf(flags)
    const work = workOf(asked.work, flags)
    const status = createStatusLine(io, !out.json)
    const unmasked = flags.showUrl ?? false
    const log = createLogLines(io, { json: out.json, level: 'info', clock, unmasked, around: status.around })
    const opened = await openMill(cli.parts, asked, { logger: log })
    try {
      for (const [message, fields] of placesOf(opened, asked, unmasked)) log.info(fields, message)
      const { mill } = opened
      const report = await runWorker({
        mill,
        io,
        clock,
        log,
        work,
        deadlineMs,
        eachJob: true,
        onSecond: () => status.refresh(mill),
      })
      status.clear()
      out.show(reportDocument(report), () => '')
      return report.exitCode
    } finally {
      status.clear()
      await opened.stop()
    }
  })
}

/** What is said before the first job. */
export function placesOf(
  { url, dir }: Pick<OpenedMill, 'url' | 'dir'>,
  { store }: Pick<Settings, 'store'>,
  showUrl: boolean,
): readonly (readonly [string, Record<string, unknown>])[] {
  return [
    ...(dir === undefined ? [] : [['the embedded PostgreSQL keeps its data here', { dir }] as const]),
    url === undefined
      ? [`jobs are kept in ${store.shown}`, {}]
      : [showUrl ? 'database' : 'database; --show-url shows its password', { url: showUrl ? url : maskUrls(url) }],
  ]
}
