// The proxy before Redis: a black hole is one only if nobody hears that the other side has gone.
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import { expect, test } from 'vitest'
import { startTcpProxy } from './tcp-proxy.ts'
import type { TcpProxy } from './tcp-proxy.ts'

test.each(['client', 'server'] as const)('in a black hole nobody hears that the %s has gone', async (who) => {
  const { proxy, pair, talk, close } = await setup()
  try {
    const { client, server } = await pair()
    const [gone, other] = who === 'client' ? [client, server] : [server, client]
    const heard: string[] = []
    other.on('end', () => heard.push('end'))
    other.on('error', () => heard.push('reset'))
    const closed = new Promise<void>((resolve) => {
      other.on('close', () => resolve())
    })
    proxy.blackhole(true)
    gone.destroy()
    // What was on its way has arrived when others have been answered.
    await talk()
    await talk()
    heard.push('the hole closes')
    proxy.blackhole(false)
    await closed
    expect(heard).toEqual(['the hole closes', 'reset'])
  } finally {
    await close()
  }
})

test('without one an end is passed on', async () => {
  const { pair, close } = await setup()
  try {
    const { client, server } = await pair()
    const closed = once(server, 'close')
    client.end()
    await closed
    expect(server.destroyed).toBe(true)
  } finally {
    await close()
  }
})

interface Setup {
  readonly proxy: TcpProxy
  /** Both ends of a connection through it. */
  readonly pair: () => Promise<{ readonly client: Socket; readonly server: Socket }>
  /** A question and its answer past it. */
  readonly talk: () => Promise<void>
  readonly close: () => Promise<void>
}

async function setup(): Promise<Setup> {
  const taken: Socket[] = []
  const server = createServer((socket) => {
    taken.push(socket)
    socket.on('data', (bytes) => void socket.write(bytes))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo // it listens on TCP
  const proxy = await startTcpProxy(port)
  const ask = async (at: number): Promise<Socket> => {
    const client = connect(at, '127.0.0.1')
    const answered = once(client, 'data')
    client.write('?')
    await answered
    return client
  }
  return {
    proxy,
    async pair() {
      const client = await ask(proxy.port)
      return { client, server: taken.at(-1)! }
    },
    async talk() {
      const client = await ask(port)
      client.destroy()
    },
    async close() {
      await proxy.close()
      for (const socket of taken) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
