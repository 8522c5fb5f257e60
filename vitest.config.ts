// Projects are what can be run apart: `npx vitest run --project chaos`. Without a name all of them run.
import { configDefaults, defineConfig } from 'vitest/config'

/** Faults under load take both cores: nothing that measures time runs beside them. */
const CHAOS = ['tests/chaos/**/*.test.ts']

/** Real processes that are killed and counted: what they promise is in seconds, so nothing that takes both cores runs beside them. */
const PROCESSES = [
  'tests/supervisor/postgres.test.ts',
  'tests/supervisor/redis.test.ts',
  'tests/supervisor/hybrid.test.ts',
  'tests/supervisor/processes.test.ts',
  'tests/supervisor/autoscale-processes.test.ts',
]

/** Compiles, warms up a server and works at full speed: by itself. */
const COMMANDS = ['tests/bench/command.test.ts']

/**
 * What changes the process it runs in: once AsyncLocalStorage was used, promises are several times as slow on Node 20.
 * Each of these has a process of its own; all others share two, because loading the project anew takes longer than most tests.
 */
const APART = [
  'tests/simulation/**/*.test.ts',
  'tests/testing-kit/**/*.test.ts',
  'tests/types/**/*.test.ts',
  'tests/docs.test.ts',
  'tests/embedded/**/*.test.ts',
  'tests/transactions/**/*.test.ts',
  'tests/features/tracing.test.ts',
  'tests/**/features/metrics.test.ts',
  'tests/hybrid/features/stores.test.ts',
]

const ALL = ['src/**/*.test.ts', 'tests/**/*.test.ts']

export default defineConfig({
  test: {
    // The servers that test files share live in a directory that is removed at the end.
    globalSetup: ['tests/support/global-setup.ts'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 20_000,
    // The first file that asks for a server waits until it is made.
    hookTimeout: 60_000,
    projects: [
      project('shared', ALL, {
        isolate: false,
        exclude: [...configDefaults.exclude, ...CHAOS, ...PROCESSES, ...COMMANDS, ...APART],
      }),
      project('apart', APART),
      project('chaos', CHAOS),
      project('processes', PROCESSES),
      project('commands', COMMANDS),
    ],
  },
})

function project(name: string, include: string[], more: { isolate?: boolean; exclude?: string[] } = {}) {
  return { extends: true as const, test: { name, include, ...more } }
}
