// Where everything of a run lives: servers, their data, the books. No server outlives the run, however that ends, and no file
// unless somebody should look at it.
import { killStagesOnExit } from '../scripts/run-stage.ts'
import {
  RUN_DIRECTORY_VARIABLE,
  keepRunDirectory,
  makeRunDirectory,
  removeRunDirectory,
  stopServers,
  stopServersNow,
} from '../tests/support/run-directory.ts'

export interface Home {
  readonly directory: string
  /** Its files shall be there after the run. */
  keep(): void
  /** Stops every server in it. Answers where the files are, if they are kept. */
  close(): Promise<string | undefined>
}

/** Before anything is started: from now on a signal ends whatever lives here. */
export async function openHome(): Promise<Home> {
  killStagesOnExit()
  const directory = await makeRunDirectory()
  process.env[RUN_DIRECTORY_VARIABLE] = directory
  let isKept = false
  // Its files are removed by the next run: other listeners may have a disk mounted there.
  const endNow = (): void => stopServersNow(directory)
  process.once('exit', endNow)
  return {
    directory,
    keep: () => void (isKept = true),
    async close() {
      try {
        if (isKept) await stopServers(directory)
        else await removeRunDirectory(directory)
        return isKept ? keepRunDirectory(directory) : undefined
      } catch (error) {
        // What was seen counts; a disk of a cell that hung may still be mounted there.
        console.error(`${directory} could not be cleared up:`, error)
        return directory
      } finally {
        process.off('exit', endNow)
      }
    },
  }
}
