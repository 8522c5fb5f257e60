// One line at the bottom of the terminal that is drawn over itself; elsewhere a plain line when something has
// changed. Log lines pass through `around`, so that they stand above it.
import type { Millrace } from '../millrace.ts'
import type { JobStatus } from '../core/job.ts'
import type { CliIo } from './io.ts'
import { fit } from './text.ts'

export interface StatusLine {
  readonly around: (write: () => void) => void
  /** Reads the counts and draws; a read that is still under way is not repeated. */
  refresh(mill: Pick<Millrace, 'jobs'>): void
  clear(): void
}

const SHOWN = [
  'queued',
  'running',
  'scheduled',
  'blocked',
  'completed',
  'failed',
] as const satisfies readonly JobStatus[]
const CLEAR = '\r\u001b[K'

export function createStatusLine(io: Pick<CliIo, 'stderr'>, wanted: boolean): StatusLine {
  const { stderr } = io
  const live = wanted && stderr.isTty
  let drawn = ''
  let said = ''
  let reading = false
  let over = false

  const draw = (): void => {
    if (drawn !== '') stderr.write(fit(drawn, Math.max(1, stderr.columns - 1)))
  }
  const erase = (): void => {
    if (drawn !== '') stderr.write(CLEAR)
  }

  async function read({ jobs }: Pick<Millrace, 'jobs'>): Promise<void> {
    const counts = await jobs.counts()
    const sum = (status: JobStatus): number => counts.reduce((all, one) => all + one.counts[status], 0)
    const text = SHOWN.map((status) => `${status} ${sum(status)}`).join(' · ')
    if (over || text === said) return
    said = text
    if (live) {
      erase()
      drawn = text
      draw()
    } else stderr.write(`${text}\n`)
  }

  return {
    around(write) {
      erase()
      write()
      draw()
    },
    refresh(mill) {
      if (!wanted || reading) return
      reading = true
      // The worker reports what is wrong with its store; this line only waits until it can be read again.
      read(mill)
        .catch(() => undefined)
        .finally(() => (reading = false))
        .catch(() => undefined)
    },
    clear() {
      over = true
      erase()
      drawn = ''
    },
  }
}
