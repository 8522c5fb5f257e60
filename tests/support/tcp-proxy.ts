// A plain TCP proxy on loopback, for stores whose protocol need not be read: it can go silent, reset what is open, add
// latency, and send new connections somewhere else.
import { connect, createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'

export interface TcpProxy {
  readonly port: number
  /** Bytes are swallowed both ways, and nobody is told; what was swallowed is gone. Off: the links it held are reset. */
  blackhole(isOn: boolean): void
  /** Only what clients send is swallowed: requests never arrive. */
  deafen(isOn: boolean): void
  delay(ms: number): void
  resetAll(): void
  retarget(port: number): void
  close(): Promise<void>
}

export async function startTcpProxy(targetPort: number): Promise<TcpProxy> {
  const sockets = new Set<Socket>()
  let delayMs = 0
  let isHoled = false
  let isDeaf = false

  function pipe(from: Socket, to: Socket, isRequest: boolean): void {
    from.on('data', (bytes) => {
      if (isHoled || (isDeaf && isRequest)) return
      if (delayMs === 0) to.write(bytes)
      else setTimeout(() => to.write(bytes), delayMs)
    })
    const end = (): void => {
      from.destroy()
      to.destroy()
      sockets.delete(from)
      sockets.delete(to)
    }
    from.on('close', end)
    from.on('error', end)
  }

  const resetAll = (): void => {
    for (const socket of sockets) socket.resetAndDestroy()
    sockets.clear()
  }
  const server = createServer({ noDelay: true }, (client) => {
    const upstream = connect({ port: targetPort, host: '127.0.0.1', noDelay: true })
    sockets.add(client).add(upstream)
    pipe(client, upstream, true)
    pipe(upstream, client, false)
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  return {
    port: (server.address() as AddressInfo).port, // it listens on TCP
    blackhole(isOn) {
      isHoled = isOn
      if (!isOn) resetAll()
    },
    deafen(isOn) {
      isDeaf = isOn
      if (!isOn) resetAll()
    },
    delay(ms) {
      delayMs = ms
    },
    resetAll,
    retarget(port) {
      targetPort = port
    },
    close() {
      resetAll()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}
