// The eye on a real Redis: plain reads for a look, a script each for counters and for the live status of jobs.
import type { RedisLink } from '../redis/link.ts'
import { script } from '../redis/script.ts'
import { TOKEN_COUNTS } from './eye.ts'
import type { RaceEye, TokenCount } from './eye.ts'
import { countsKey, jobKey, queueKeys } from './keys.ts'
import { LUA } from './lua.generated.ts'

const SHOW = script('hybrid show', LUA.show)
const COUNT = script('hybrid count', LUA.count)
export const COUNTS_KEPT_S = 7 * 24 * 60 * 60
/** Bounds one script. */
const SHOWN_PER_CALL = 200

export function redisEye({ link, prefix }: { readonly link: RedisLink; readonly prefix: string }): RaceEye {
  return {
    async look(queue) {
      const [state, , , , held] = queueKeys(prefix, queue)
      const [fields, heldCount, counts] = await Promise.all([
        link.command('HMGET', state, 'epoch', 'high', 'normal', 'low', 'backlog', 'revoked'),
        link.command('HLEN', held),
        link.command('HMGET', countsKey(prefix, queue), ...TOKEN_COUNTS),
      ])
      const [epoch, high, normal, low, backlog, revoked] = fields as readonly (string | null)[]
      const depths = [Number(high ?? 0), Number(normal ?? 0), Number(low ?? 0)] as const
      const bits = backlog ?? '000'
      // One field of `held` is the epoch. Read one after the other, so the difference may be off for a moment.
      const inFlight = Math.max(Number(heldCount) - 1 - depths[0] - depths[1] - depths[2], 0)
      const backlogs = [bits[0] === '1', bits[1] === '1', bits[2] === '1'] as const
      return {
        epoch: epoch ?? '',
        depths,
        backlog: backlogs,
        revoked: Number(revoked ?? 0),
        inFlight,
        counts: countsOf(counts),
      }
    },
    async has(queue, fields) {
      if (fields.length === 0) return []
      const notes = (await link.command('HMGET', queueKeys(prefix, queue)[4], ...fields)) as readonly (string | null)[]
      return notes.map((note) => note !== null)
    },
    async count(queue, more) {
      const args = Object.entries(more).flatMap(([name, number]) => (number > 0 ? [name, number] : []))
      if (args.length > 0) await link.run(COUNT, [countsKey(prefix, queue)], [COUNTS_KEPT_S, ...args])
    },
    async show(queue, jobs) {
      for (let from = 0; from < jobs.length; from += SHOWN_PER_CALL) {
        const part = jobs.slice(from, from + SHOWN_PER_CALL)
        const keys = part.map(({ id }) => jobKey(prefix, queue, id))
        const args = part.flatMap(({ lease, keepMs, fields, times, gone }) => [
          lease,
          Math.ceil(keepMs / 1000),
          JSON.stringify({ fields, times, gone }),
        ])
        await link.run(SHOW, keys, args)
      }
    },
    onMasters: (ask) => link.onMasters(ask),
  }
}

function countsOf(reply: unknown): Record<TokenCount, number> {
  const numbers = reply as readonly (string | null)[]
  const named = TOKEN_COUNTS.map((name, at) => [name, Number(numbers[at] ?? 0)])
  return Object.fromEntries(named) as Record<TokenCount, number> // one entry for each name
}
