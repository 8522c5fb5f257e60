// A TCP link on loopback that is slower than loopback: what clients send arrives later, what servers answer does not, so
// that a round trip is longer by what was asked for. Bytes of a connection keep their order.
import { connect, createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import { nowMs } from './crew.ts'

/** Timers count whole milliseconds and fire late: up to half a step early keeps the mean at what was asked for. */
const EARLY_MS = 0.5

export interface OpenLink {
  readonly port: number
  close(): void
}

export async function openLink(targetPort: number, line: DelayLine): Promise<OpenLink> {
  const sockets = new Set<Socket>()
  const server = createServer({ noDelay: true, allowHalfOpen: true }, (client) => {
    const upstream = connect({ port: targetPort, host: '127.0.0.1', noDelay: true, allowHalfOpen: true })
    const end = (): void => {
      for (const socket of [client, upstream]) {
        socket.destroy()
        sockets.delete(socket)
      }
    }
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', end)
    }
    client.on('data', (bytes) => line.send(() => void upstream.write(bytes)))
    // After all that it has sent.
    const hangUp = (): void => line.send(() => void upstream.end())
    client.on('end', hangUp)
    client.on('close', hangUp)
    upstream.on('close', end)
    upstream.pipe(client)
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  return {
    port: (server.address() as AddressInfo).port, // it listens on TCP
    close() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

interface Late {
  readonly deliver: () => void
  readonly arrivedMs: number
}

/**
 * Everything waits the same time, so first in is first out. It holds what clients send within a millisecond, and who waits
 * for answers does not send more than that.
 */
export class DelayLine {
  readonly #delayMs: number
  #waiting: Late[] = []
  #isArmed = false
  #delivered = 0
  #sumMs = 0

  constructor(delayMs: number) {
    this.#delayMs = delayMs
  }

  send(deliver: () => void): void {
    // A busy line need not wait for its timer.
    this.#release()
    this.#waiting.push({ deliver, arrivedMs: nowMs() })
    this.#arm()
  }

  /** How late deliveries were, on average. */
  meanMs(): number {
    return this.#delivered === 0 ? 0 : this.#sumMs / this.#delivered
  }

  #arm(): void {
    if (this.#isArmed || this.#waiting.length === 0) return
    this.#isArmed = true
    setTimeout(() => {
      this.#isArmed = false
      this.#release()
      this.#arm()
    }, this.#delayMs)
  }

  #release(): void {
    const now = nowMs()
    const due = this.#waiting.findIndex(({ arrivedMs }) => now - arrivedMs < this.#delayMs - EARLY_MS)
    const ready = this.#waiting.splice(0, due === -1 ? this.#waiting.length : due)
    for (const { deliver, arrivedMs } of ready) {
      this.#delivered += 1
      this.#sumMs += now - arrivedMs
      deliver()
    }
  }
}
