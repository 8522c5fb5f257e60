// The process of a slow link, so that it takes no time from what it is measured with. It is told the delay and the ports of
// the servers, says on which ports it listens, and how late it was when it is asked. It ends with its parent.
import type { LinkAnswer } from './forked-link.ts'
import { DelayLine, openLink } from './link.ts'

const [addedMs = 0, ...targetPorts] = process.argv.slice(2).map(Number)
const line = new DelayLine(addedMs)

function send(answer: LinkAnswer): void {
  // A parent that has gone ends this process, see below.
  process.send?.(answer, () => undefined)
}

process.on('message', () => send({ kind: 'late', meanMs: line.meanMs() }))
process.once('disconnect', () => process.exit(0))
const links = await Promise.all(targetPorts.map((port) => openLink(port, line)))
send({ kind: 'open', ports: links.map(({ port }) => port) })
