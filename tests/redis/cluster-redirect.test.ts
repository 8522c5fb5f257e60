// A slot that is moving: the node that has it sends a call on to another (ASK), and that one is not there.
import { createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { script } from '../../src/backends/redis/script.ts'
import { freePort } from '../../src/backends/embedded/start-postmaster.ts'
import { useRedis } from './support.ts'

const redis = useRedis()

test('a call that is sent on to a node that is gone fails with a typed error, and nothing else does', async () => {
  const gone = await freePort()
  const port = await startNode((own) => ({ slots: own, evalsha: `-ASK 5 127.0.0.1:${gone}\r\n` }))
  const unheard: unknown[] = []
  const hear = (error: unknown): void => void unheard.push(error)
  process.on('unhandledRejection', hear)
  onTestFinished(() => void process.off('unhandledRejection', hear))
  const link = redis.link({ cluster: [`redis://127.0.0.1:${port}`] })
  await link.connect()
  const call = link.run(script('one', 'return 1'), ['{a}key'], ['value'])
  await expect(call).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true })
  await new Promise((resolve) => setTimeout(resolve, 100))
  expect(unheard).toEqual([])
})

interface Answers {
  /** The port that has all slots. */
  readonly slots: number
  readonly evalsha: string
}

/** Says what a node of a Cluster says, and `+OK` to all else. */
async function startNode(answersOf: (port: number) => Answers): Promise<number> {
  const sockets = new Set<Socket>()
  let port = 0
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    let text = ''
    socket.on('data', (data) => {
      text += data.toString('latin1')
      for (let call = readCall(text); call !== null; call = readCall(text)) {
        text = text.slice(call.length)
        socket.write(answerTo(call.words, answersOf(port)))
      }
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  port = (server.address() as AddressInfo).port
  onTestFinished(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return port
}

function answerTo([name = '', what = '']: readonly string[], { slots, evalsha }: Answers): string {
  const command = name.toLowerCase()
  if (command === 'evalsha') return evalsha
  if (command === 'info') return bulk('loading:0\r\nrole:master\r\n')
  if (command !== 'cluster') return '+OK\r\n'
  if (what.toLowerCase() !== 'slots') return bulk('cluster_state:ok\r\n')
  return `*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n${bulk('127.0.0.1')}:${slots}\r\n`
}

function bulk(text: string): string {
  return `$${Buffer.byteLength(text)}\r\n${text}\r\n`
}

/** The first whole call of a text; null: it has not come yet. */
function readCall(text: string): { readonly words: readonly string[]; readonly length: number } | null {
  const [head, count = '0'] = /^\*(\d+)\r\n/.exec(text) ?? []
  if (head === undefined) return null
  const words: string[] = []
  let at = head.length
  for (let no = 0; no < Number(count); no++) {
    const [size, length = '0'] = /^\$(\d+)\r\n/.exec(text.slice(at)) ?? []
    if (size === undefined) return null
    const from = at + size.length
    at = from + Number(length) + 2
    if (text.length < at) return null
    words.push(text.slice(from, at - 2))
  }
  return { words, length: at }
}
