// The least that a pick-up needs, for tests that say how soon a job starts.
import pg from 'pg'
import type { Yardstick } from '../../stores/worker.ts'

/**
 * What this machine takes right now for the least that a pick-up needs: a commit, a notification to another session, and
 * a statement of the one that was notified.
 */
export async function layYardstick({ url }: { readonly url: string }): Promise<Yardstick> {
  const [writer, listener] = [new pg.Client(url), new pg.Client(url)]
  await Promise.all([writer.connect(), listener.connect()])
  await writer.query('create table public.yardstick (at timestamptz)')
  await listener.query('listen yardstick')
  return {
    async measure() {
      const heard = new Promise((resolve) => listener.once('notification', resolve))
      const fromMs = performance.now()
      await writer.query('insert into public.yardstick values (now())')
      await writer.query('notify yardstick')
      await heard
      await listener.query('delete from public.yardstick')
      return performance.now() - fromMs
    },
    async close() {
      await Promise.all([writer.end(), listener.end()])
    },
  }
}
