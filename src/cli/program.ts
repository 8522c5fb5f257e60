// All commands in one tree. docs/cli.md is checked against it.
import { Command } from 'commander'
import type { Cli } from './command.ts'
import { addAlerts } from './commands/alerts.ts'
import { addTasks } from './commands/tasks.ts'
import { addBatches } from './commands/batches.ts'
import { addDead } from './commands/dead.ts'
import { addDev } from './commands/dev.ts'
import { addDoctor } from './commands/doctor.ts'
import { addInit } from './commands/init.ts'
import { addJobs } from './commands/jobs.ts'
import { addMigrate } from './commands/migrate.ts'
import { addQueues } from './commands/queues.ts'
import { addSchedules } from './commands/schedules.ts'
import { addStatus } from './commands/status.ts'
import { addSupervise } from './commands/supervise.ts'
import { addTop } from './commands/top.ts'
import { addWhy } from './commands/why.ts'
import { addWork } from './commands/work.ts'
import { addWorkers } from './commands/workers.ts'
import { teach } from './command.ts'

export function buildProgram(cli: Cli, version: string): Command {
  const { io } = cli.parts
  const program = new Command('millrace')
    .description('Background jobs for TypeScript and Node: run workers, look at queues, act on jobs.')
    .version(version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'explain a command')
    .helpCommand('help [command]', 'explain a command')
    .option('--config <file>', 'configuration file; default: millrace.config.ts (.mts, .js, .mjs) here or above')
    .option('--postgres <url>', 'PostgreSQL server; default: MILLRACE_DATABASE_URL, the configuration, DATABASE_URL')
    .option('--redis <url>', 'Redis server that keeps the jobs; default: MILLRACE_REDIS_URL, the configuration')
    .option('--schema <name>', 'schema in the database; default: MILLRACE_SCHEMA, the configuration, millrace')
    .option('--json', 'one JSON document on stdout, errors as JSON on stderr')
    .option('--no-color', 'no colours; so does NO_COLOR')
    .configureHelp({ showGlobalOptions: true, helpWidth: io.stdout.isTty ? io.stdout.columns : 100 })
    .configureOutput({
      writeOut: (text) => io.stdout.write(text),
      writeErr: (text) => io.stderr.write(text),
      // Said once, by whoever catches it, as text or as JSON.
      outputError: () => undefined,
    })
    .exitOverride()
  teach(program, {
    examples: [
      ['init', 'a configuration and a first job'],
      ['dev', 'database, worker and jobs with one command'],
      ['work --queue mail --concurrency 50', 'a worker for production'],
      ['status --postgres postgres://ops@db/app', 'how are the queues'],
      ['why 0197…', 'why does this job not run'],
    ],
    exits: ['notFound', 'unmet', 'timedOut'],
  })
  const add = [
    addInit,
    addDev,
    addWork,
    addMigrate,
    addStatus,
    addTop,
    addJobs,
    addQueues,
    addDead,
    addSchedules,
    addBatches,
  ]
  for (const one of [...add, addSupervise, addWorkers, addAlerts, addTasks, addWhy, addDoctor]) one(program, cli)
  return program
}
