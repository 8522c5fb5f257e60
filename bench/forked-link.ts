// A slow link to servers, in a process of its own: see link.ts.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

export type LinkAnswer =
  | { readonly kind: 'open'; readonly ports: readonly number[] }
  | { readonly kind: 'late'; readonly meanMs: number }

export interface Link {
  /** The address of the same server behind the link. */
  urlOf(url: string): string
  /** What was added to a round trip, on average. */
  meanMs(): Promise<number>
  close(): Promise<void>
}

/** `urls` are of servers on this machine. */
export async function forkLink(urls: readonly string[], addedMs: number): Promise<Link> {
  const targets = urls.map((url) => new URL(url).port)
  // Compiled, beside this file.
  const child = fork(fileURLToPath(new URL('./link-process.js', import.meta.url)), [String(addedMs), ...targets])
  const next = async (): Promise<LinkAnswer> => {
    // What the process sends is of this type; it sends nothing else.
    const [answer] = (await Promise.race([once(child, 'message'), gone()])) as [LinkAnswer]
    return answer
  }
  const gone = async (): Promise<never> => {
    await once(child, 'exit')
    throw new Error('the process of the slow link has ended')
  }
  const opened = await next()
  const ports = opened.kind === 'open' ? opened.ports : []
  return {
    urlOf(url) {
      const place = new URL(url)
      place.port = String(ports[targets.indexOf(place.port)]!)
      return place.href
    },
    async meanMs() {
      child.send('how late?')
      const answer = await next()
      return answer.kind === 'late' ? answer.meanMs : 0
    },
    async close() {
      const ended = once(child, 'exit')
      child.disconnect()
      await ended
    },
  }
}
