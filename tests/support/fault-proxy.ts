// A bad network before a PostgreSQL server: a proxy on loopback that adds latency, goes silent, resets connections,
// and swallows the answer to a statement that the server has carried out. It reads the protocol just far enough to
// know which statement passes by and when the server has answered it.
import { createServer, connect } from 'node:net'
import type { AddressInfo, Server, Socket } from 'node:net'

export interface Loss {
  /** Which statement, by its text; prepared ones are known by the text they were prepared with. */
  readonly statement: RegExp
  /** `reply`: the server has answered, and nobody hears it. `sent`: the connection breaks once it was passed on. */
  readonly lose: 'reply' | 'sent'
  /** The first so many that match pass. Default 0. */
  readonly after?: number
  /** Then so many are lost. Default 1. */
  readonly times?: number
}

export interface FaultProxy {
  readonly port: number
  /** Connections that are open now. */
  readonly open: number
  /** Connections that the server has been asked for so far and has taken. */
  readonly made: number
  /** The same database, through the proxy. */
  urlOf(url: string): string
  /** Both ways, from now on. */
  delay(ms: number): void
  /** Nothing passes any more, nobody is told; `false`: what was kept passes, in order. */
  blackhole(isOn: boolean): void
  /** The same for good, for the connections that are open now: as when a firewall forgets them. New ones pass. */
  forget(): void
  resetAll(): void
  /** So many bytes of answers pass on each connection that is open now, then it is reset, wherever that is. */
  cutAfter(bytes: number): void
  /** Answers how many were lost so far. */
  lose(loss: Loss): { readonly count: number }
  /** Where new connections go; those that are open stay. */
  retarget(port: number): void
  close(): Promise<void>
}

interface LossState extends Required<Loss> {
  seen: number
  count: number
}

export async function startFaultProxy(targetPort: number): Promise<FaultProxy> {
  const links = new Set<Link>()
  const forgotten = new WeakSet<Link>()
  const losses: LossState[] = []
  let delayMs = 0
  let isHoled = false
  let made = 0

  // Half open: nobody is told of an end before it is its turn, and in a black hole never.
  const options = { noDelay: true, allowHalfOpen: true } as const
  const server = createServer(options, (client) => {
    const upstream = connect({ port: targetPort, host: '127.0.0.1', ...options })
    upstream.once('connect', () => (made += 1))
    const link = new Link(client, upstream, {
      delayMs: () => delayMs,
      lossOf: (text) => lossOf(losses, text),
      onEnd: () => links.delete(link),
    })
    links.add(link)
    link.hold(isHoled)
  })
  const port = await listen(server)

  return {
    port,
    get open() {
      return links.size
    },
    get made() {
      return made
    },
    urlOf(url) {
      const through = new URL(url)
      through.hostname = '127.0.0.1'
      through.port = String(port)
      return through.href
    },
    delay(ms) {
      delayMs = ms
    },
    blackhole(isOn) {
      isHoled = isOn
      for (const link of links) link.hold(isOn || forgotten.has(link))
    },
    forget() {
      for (const link of links) link.hold(true)
      for (const link of links) forgotten.add(link)
    },
    resetAll() {
      for (const link of links) link.reset()
    },
    cutAfter(bytes) {
      for (const link of links) link.cutAfter(bytes)
    },
    lose(loss) {
      const state = { after: 0, times: 1, ...loss, seen: 0, count: 0 }
      losses.push(state)
      return state
    },
    retarget(newPort) {
      targetPort = newPort
    },
    close() {
      for (const link of links) link.reset()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}

function lossOf(losses: readonly LossState[], text: string): Loss['lose'] | undefined {
  for (const loss of losses) {
    if (!loss.statement.test(text)) continue
    loss.seen += 1
    if (loss.seen <= loss.after || loss.count >= loss.times) continue
    loss.count += 1
    return loss.lose
  }
  return undefined
}

function listen(server: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port)) // it listens on TCP
  })
}

interface LinkOptions {
  readonly delayMs: () => number
  readonly lossOf: (text: string) => Loss['lose'] | undefined
  readonly onEnd: () => void
}

/** One connection of a client, and the one it has to the server. */
class Link {
  readonly #client: Socket
  readonly #server: Socket
  readonly #options: LinkOptions
  readonly #asked = new Messages(true)
  readonly #answered = new Messages(false)
  /** Prepared statements by their names. */
  readonly #prepared = new Map<string, string>()
  /** Answers that the client still waits for. */
  #waitsFor = 0
  /** So many of them still pass, then nothing does. */
  #passes: number | undefined
  #isHeld = false
  /** Bytes of answers that still pass. */
  #allowance = Infinity
  readonly #queue: { readonly dueMs: number; readonly pass: () => void }[] = []
  #timer: NodeJS.Timeout | undefined

  constructor(client: Socket, server: Socket, options: LinkOptions) {
    this.#client = client
    this.#server = server
    this.#options = options
    client.on('data', (chunk) => this.#fromClient(chunk))
    server.on('data', (chunk) => this.#fromServer(chunk))
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ] as const) {
      socket.on('error', () => undefined) // seen as its end below
      socket.on('end', () => this.#later(() => other.end()))
      socket.on('close', () => {
        options.onEnd()
        this.#later(() => other.destroy())
      })
    }
  }

  hold(isHeld: boolean): void {
    this.#isHeld = isHeld
    this.#drain()
  }

  cutAfter(bytes: number): void {
    this.#allowance = bytes
  }

  reset(): void {
    this.#client.resetAndDestroy()
    this.#server.resetAndDestroy()
  }

  #fromClient(chunk: Buffer): void {
    let isLast = false
    for (const message of this.#asked.take(chunk)) {
      const text = this.#statementIn(message)
      const lose = text === undefined ? undefined : this.#options.lossOf(text)
      if (lose === 'sent') isLast = true
      if (lose === 'reply') this.#passes ??= this.#waitsFor
      // The login, a simple query and a Sync are each answered by one ReadyForQuery.
      if (message.type === '' || message.type === 'Q' || message.type === 'S') this.#waitsFor += 1
    }
    this.#later(() => {
      // The server gets it whole before the connection breaks.
      this.#server.write(chunk, () => {
        if (isLast) this.#breakAfterSending()
      })
    })
  }

  #fromServer(chunk: Buffer): void {
    for (const { type } of this.#answered.take(chunk)) {
      if (type !== 'Z') continue
      if (this.#passes === 0) return this.reset()
      if (this.#passes !== undefined) this.#passes -= 1
      this.#waitsFor -= 1
    }
    // An answer that shares a chunk with the one to be lost is lost with it.
    if (this.#passes === 0) return
    const part = chunk.subarray(0, Math.min(this.#allowance, chunk.length))
    this.#allowance -= part.length
    this.#later(() => {
      this.#client.write(part)
      if (part.length < chunk.length) this.reset()
    })
  }

  /** The client sees a reset; the server an ordinary end, after it has read everything. */
  #breakAfterSending(): void {
    this.#client.resetAndDestroy()
    this.#server.end()
  }

  #statementIn({ type, body }: Message): string | undefined {
    if (type === 'Q') return textAt(body, 0)
    if (type === 'P') {
      const name = textAt(body, 0)
      this.#prepared.set(name, textAt(body, Buffer.byteLength(name) + 1))
    }
    // The portal stands before the name of the statement.
    return type === 'B' ? this.#prepared.get(textAt(body, Buffer.byteLength(textAt(body, 0)) + 1)) : undefined
  }

  /** In order, whatever the delay was and is. */
  #later(pass: () => void): void {
    this.#queue.push({ dueMs: performance.now() + this.#options.delayMs(), pass })
    this.#drain()
  }

  #drain(): void {
    const nowMs = performance.now()
    while (!this.#isHeld && (this.#queue[0]?.dueMs ?? Infinity) <= nowMs) this.#queue.shift()?.pass()
    const [next] = this.#queue
    if (this.#isHeld || next === undefined || this.#timer !== undefined) return
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.#drain()
    }, next.dueMs - nowMs)
  }
}

interface Message {
  readonly type: string
  readonly body: Buffer
}

/** Cuts a stream into messages: a letter, a length that counts itself, and so many bytes. */
class Messages {
  #rest: Buffer = Buffer.alloc(0)
  /** The first message of a client has no letter. */
  #isFirst: boolean

  constructor(fromClient: boolean) {
    this.#isFirst = fromClient
  }

  take(chunk: Buffer): readonly Message[] {
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    const messages: Message[] = []
    for (;;) {
      const head = this.#isFirst ? 0 : 1
      if (this.#rest.length < head + 4) return messages
      const end = head + this.#rest.readInt32BE(head)
      if (this.#rest.length < end) return messages
      const type = this.#isFirst ? '' : String.fromCodePoint(this.#rest[0] ?? 0)
      messages.push({ type, body: this.#rest.subarray(head + 4, end) })
      this.#rest = this.#rest.subarray(end)
      this.#isFirst = false
    }
  }
}

function textAt(body: Buffer, from: number): string {
  return body.toString('utf8', from, body.indexOf(0, from))
}
