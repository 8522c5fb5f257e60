// The slow link of the benchmark: what clients send arrives late and in order, and answers come back whole.
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { DelayLine, openLink } from '../../bench/link.ts'

/** An echo server behind a link, and a client before it. */
async function setup(delayMs: number) {
  const line = new DelayLine(delayMs)
  const echo = createServer((socket) => socket.pipe(socket))
  echo.listen(0, '127.0.0.1')
  await once(echo, 'listening')
  const link = await openLink((echo.address() as AddressInfo).port, line) // it listens on TCP
  const client = connect({ port: link.port, host: '127.0.0.1', noDelay: true })
  await once(client, 'connect')
  onTestFinished(() => {
    client.destroy()
    link.close()
    echo.close()
  })
  return { line, client }
}

async function receive(client: Socket, bytes: number): Promise<string> {
  let text = ''
  client.on('data', (chunk) => {
    text += chunk.toString()
  })
  while (text.length < bytes) await once(client, 'data')
  return text
}

test('bytes come through in order, and what was added to a round trip is told', async () => {
  const { line, client } = await setup(20)
  const sent = Array.from({ length: 500 }, (_, index) => `${index};`)
  const startMs = performance.now()
  for (const piece of sent) client.write(piece)
  expect(await receive(client, sent.join('').length)).toBe(sent.join(''))
  // Half a millisecond early is allowed.
  expect(performance.now() - startMs).toBeGreaterThanOrEqual(19)
  expect(line.meanMs()).toBeGreaterThanOrEqual(19.5)
})

test('who hangs up is hung up on behind the link, after all that was sent', async () => {
  const { client } = await setup(5)
  const received = receive(client, 4)
  client.end('last')
  expect(await received).toBe('last')
  await once(client, 'close')
  expect(client.errored).toBeNull()
})
