// Runs once around all tests: a directory for the servers that test files share, which are started by the first file
// that asks and stopped here, also when tests failed.
import { RUN_DIRECTORY_VARIABLE, makeRunDirectory, removeRunDirectory } from './run-directory.ts'

export async function setup(): Promise<() => Promise<void>> {
  const dir = await makeRunDirectory()
  // Test processes inherit it.
  process.env[RUN_DIRECTORY_VARIABLE] = dir
  return () => removeRunDirectory(dir)
}
