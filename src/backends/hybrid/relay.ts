// The relay: moves ready rows to Redis in the order of priority, up to the window of each lane, and says with the push
// whether rows remain. On hints, when a lane runs low, and behind that a poll. Any number may run: each row is minted once.
import type { Hybrid } from './hybrid.ts'
import { push, pushAll } from './insert.ts'
import type { EpochTag } from './ports.ts'
import { tokenOfMinted } from './token-text.ts'
import { roomsOf } from './window.ts'

/**
 * One turn for a queue. Answers whether more is to be done at once. Throws when the outcome is unknown. Unless it is thorough
 * PostgreSQL is asked only about lanes that are known to have rows there: those of an empty lane come with a hint.
 */
export async function relayOnce(
  hybrid: Hybrid,
  queue: string,
  pipes: Map<string, string>,
  isThorough: boolean,
): Promise<boolean> {
  const tag = hybrid.view.tag(queue)
  if (tag === null || hybrid.view.row(queue)?.paused === true || hybrid.watch.isOpen(queue)) return false
  const pipe = pipes.get(queue) ?? hybrid.pipes.take()
  pipes.delete(queue)
  const before = await push(hybrid, queue, tag, pipe, [], null)
  if (before === undefined) return false
  const rooms = roomsOf(hybrid.relayTerms(), before, () => hybrid.lanes.all((name) => hybrid.view.tag(name)))
  if (rooms.every((room) => room === 0)) {
    if (!before.backlog.every(Boolean)) await sayFull(hybrid, queue, tag, pipe)
    pipes.set(queue, pipe)
    return false
  }
  if (!isThorough && !rooms.some((room, lane) => room > 0 && before.backlog[lane])) {
    pipes.set(queue, pipe)
    return false
  }
  const { jobs, backlog, refused } = await hybrid.ledger.relay(queue, tag, rooms)
  if (refused !== null) {
    hybrid.view.learn(refused)
    pipes.set(queue, pipe)
    return false
  }
  if (jobs.length > 0) hybrid.runtime.failpoint('hybrid.relay-minted')
  const isSame = backlog.every((bit, lane) => bit === before.backlog[lane])
  if (jobs.length > 0 || !isSame) {
    const lanes = hybrid.view.row(queue)?.lanes ?? [0, 0]
    const tokens = jobs.map((job) => tokenOfMinted(job, lanes))
    await pushAll(hybrid, queue, tag, pipe, tokens, backlog)
  }
  // After an unknown push the pipe is not used again: it is not put back.
  pipes.set(queue, pipe)
  return jobs.length > 0 && backlog.some(Boolean)
}

/** Producers are to use the ledger while there is no room. */
async function sayFull(hybrid: Hybrid, queue: string, tag: EpochTag, pipe: string): Promise<void> {
  await push(hybrid, queue, tag, pipe, [], [true, true, true])
}
