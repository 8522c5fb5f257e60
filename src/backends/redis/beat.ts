// A heartbeat: the call and its reply, for the main loop and for the thread that beats on a connection of its own.
// This module is what the thread loads (`threadLiveness.module`).
import type { JobId, LeaseNumber } from '../../core/job.ts'
import { silentLogger } from '../../runtime/logger.ts'
import type { BeatReply, BeatRequest, WorkerCommand } from '../../store/worker-store.ts'
import { createLink } from './ioredis-link.ts'
import { redisKeys } from './keys.ts'
import type { RedisKeys } from './keys.ts'
import type { RedisLink, RedisServer } from './link.ts'
import { scriptOf } from './store.ts'

/** Plain data: it crosses to a thread. */
export interface BeatOptions {
  readonly server: RedisServer
  readonly prefix: string
  readonly name: string
  readonly connectTimeoutMs: number
}

interface BeatParts {
  readonly link: RedisLink
  readonly keys: RedisKeys
  readonly clockKey?: string
}

export function prepareBeat(parts: BeatParts): (request: BeatRequest) => Promise<BeatReply> {
  const { link, keys } = parts
  const beat = scriptOf(parts, 'workers.beat', 'workerBeat')
  return async ({ id, running, commandsSeen, blockedMs }) => {
    const args = [keys.prefix, id, running, commandsSeen, Math.round(blockedMs ?? 0)]
    return parseBeat(await link.run(beat, [keys.worker(id)], args))
  }
}

/** A beat over a connection of its own, made again whenever it is lost. */
export async function createBeat({ server, prefix, name, connectTimeoutMs }: BeatOptions): Promise<{
  beat(request: BeatRequest): Promise<BeatReply>
  close(): Promise<void>
}> {
  const link = createLink({ server, name: `${name}:heartbeat`, connectTimeoutMs, logger: silentLogger })
  const beat = prepareBeat({ link, keys: redisKeys(prefix) })
  return {
    async beat(request) {
      // The first one connects; after that the link comes back by itself.
      await link.connect()
      return beat(request)
    },
    close: () => link.close(),
  }
}

const DEAD: BeatReply = { alive: false, cancels: [], commands: [] }

function parseBeat(reply: unknown): BeatReply {
  if (reply === null) return DEAD
  const [cancels, commands] = reply as readonly [readonly string[], readonly string[]] // as worker-beat.lua answers
  return {
    alive: true,
    cancels: pairs(cancels).map(([id, lease]) => ({ jobId: id as JobId, lease: Number(lease) as LeaseNumber })),
    // Written by `send`.
    commands: pairs(commands).map(([no, text]) => ({ no: Number(no), command: JSON.parse(text) as WorkerCommand })),
  }
}

function pairs(flat: readonly string[]): readonly (readonly [string, string])[] {
  const found: [string, string][] = []
  for (let at = 0; at < flat.length; at += 2) found.push([flat[at] ?? '', flat[at + 1] ?? ''])
  return found
}
