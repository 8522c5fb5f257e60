import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'tests/**/*.test.ts'],
    // The servers that test files share live in a directory that is removed at the end.
    globalSetup: ['tests/support/global-setup.ts'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 20_000,
    // The first file that asks for a server waits until it is made.
    hookTimeout: 60_000,
  },
})
