// A plain TCP proxy on loopback, for stores whose protocol need not be read: it can go silent, reset what is open, add
// latency, and send new connections somewhere else.
import { connect, createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'

export interface TcpProxy {
  readonly port: number
  /** Connections that are open now, and those that the server has been asked for so far and has taken. */
  readonly open: number
  readonly made: number
  /** Bytes and ends are swallowed both ways, and nobody is told; what was swallowed is gone. Off: the links it held are reset. */
  blackhole(isOn: boolean): void
  /** Only what clients send is swallowed: requests never arrive. */
  deafen(isOn: boolean): void
  delay(ms: number): void
  /** So many bytes of answers pass on each connection that is open now, then it is reset, wherever that is. */
  cutAfter(bytes: number): void
  /** The answers to the next so many requests with these bytes in them are swallowed, and their connections reset. */
  loseReplies(request: RegExp, times: number): { readonly count: number }
  resetAll(): void
  retarget(port: number): void
  close(): Promise<void>
}

export async function startTcpProxy(targetPort: number): Promise<TcpProxy> {
  const sockets = new Set<Socket>()
  let delayMs = 0
  let isHoled = false
  let isDeaf = false
  let loss: { readonly request: RegExp; readonly times: number; count: number } | undefined
  /** Clients whose next answer is swallowed. */
  const unanswered = new Set<Socket>()
  /** Bytes that still pass to a client. */
  const allowances = new Map<Socket, number>()
  const clients = new Set<Socket>()
  let made = 0

  /** Whether it passes; a client that gets no answer is reset. */
  function passes(bytes: Buffer, client: Socket, isRequest: boolean): boolean {
    if (isHoled || (isDeaf && isRequest)) return false
    if (isRequest) {
      if (loss !== undefined && loss.count < loss.times && loss.request.test(bytes.toString('latin1'))) {
        loss.count += 1
        unanswered.add(client)
      }
      return true
    }
    const left = (allowances.get(client) ?? Infinity) - bytes.length
    if (left !== Infinity) allowances.set(client, left)
    if (!unanswered.delete(client) && left >= 0) return true
    // Half of the last message arrives.
    if (left < 0 && left + bytes.length > 0) client.write(bytes.subarray(0, left + bytes.length))
    client.resetAndDestroy()
    return false
  }

  function pipe(from: Socket, to: Socket, isRequest: boolean): void {
    const waiting: Buffer[] = []
    from.on('data', (bytes) => {
      if (!passes(bytes, isRequest ? from : to, isRequest)) return
      // In order, whatever the delay was and is.
      if (delayMs === 0 && waiting.length === 0) return void to.write(bytes)
      waiting.push(bytes)
      setTimeout(() => to.write(waiting.shift()!), delayMs)
    })
    const end = (socket: Socket): void => {
      socket.destroy()
      sockets.delete(socket)
      clients.delete(socket)
      unanswered.delete(socket)
      allowances.delete(socket)
    }
    from.on('error', () => undefined) // seen as its end below
    // In a black hole the other side is not told of an end before the hole closes, and is reset then.
    from.on('end', () => isHoled || end(from))
    from.on('close', () => {
      end(from)
      if (!isHoled) end(to)
    })
  }

  const resetAll = (): void => {
    for (const socket of sockets) socket.resetAndDestroy()
    sockets.clear()
  }
  const options = { noDelay: true, allowHalfOpen: true } as const
  const server = createServer(options, (client) => {
    const upstream = connect({ port: targetPort, host: '127.0.0.1', ...options })
    upstream.once('connect', () => (made += 1))
    sockets.add(client).add(upstream)
    clients.add(client)
    pipe(client, upstream, true)
    pipe(upstream, client, false)
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  return {
    port: (server.address() as AddressInfo).port, // it listens on TCP
    get open() {
      return clients.size
    },
    get made() {
      return made
    },
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
    cutAfter(bytes) {
      for (const client of clients) allowances.set(client, bytes)
    },
    loseReplies(request, times) {
      loss = { request, times, count: 0 }
      return loss
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
