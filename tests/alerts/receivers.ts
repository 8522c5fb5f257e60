// Real receivers on loopback: an HTTP server that keeps what it was sent, and an SMTP server that does.
import { createServer } from 'node:http'
import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { SMTPServer } from 'smtp-server'
import { onTestFinished } from 'vitest'

export interface Received {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly text: string
  readonly json: Readonly<Record<string, unknown>>
}

export interface HttpReceiver {
  readonly url: string
  readonly port: number
  readonly received: Received[]
}

type Answer = (response: ServerResponse, no: number) => void

const accept: Answer = (response) => void response.end('ok')

export async function httpReceiver(answer: Answer = accept): Promise<HttpReceiver> {
  const received: Received[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => void chunks.push(chunk))
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString('utf8')
      const { url: path = '', headers } = request
      received.push({ path, headers, text, json: JSON.parse(text) as Received['json'] })
      answer(response, received.length)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, port, received }
}

export interface SmtpReceiver {
  readonly port: number
  readonly letters: { readonly from: string; readonly to: readonly string[]; readonly text: string }[]
  readonly logins: { readonly user: string; readonly password: string }[]
}

/** `refuse` is the code of SMTP with which letters are refused. */
export async function smtpReceiver({ refuse }: { readonly refuse?: number } = {}): Promise<SmtpReceiver> {
  const letters: SmtpReceiver['letters'] = []
  const logins: SmtpReceiver['logins'] = []
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    allowInsecureAuth: true,
    onAuth({ username, password }, _, done) {
      logins.push({ user: username ?? '', password: password ?? '' })
      done(password === 'wrong-password' ? new Error(`bad password ${password}`) : null, { user: username ?? '' })
    },
    onData(stream, session, done) {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => void chunks.push(chunk))
      stream.on('end', () => {
        if (refuse !== undefined) {
          done(Object.assign(new Error('not now'), { responseCode: refuse }))
          return
        }
        const { mailFrom, rcptTo } = session.envelope
        const from = mailFrom === false ? '' : mailFrom.address
        const text = Buffer.concat(chunks).toString('utf8')
        letters.push({ from, to: rcptTo.map(({ address }) => address), text })
        done()
      })
    },
  })
  const listening = server.listen(0, '127.0.0.1')
  await new Promise<void>((resolve) => listening.once('listening', resolve))
  onTestFinished(() => new Promise<void>((resolve) => server.close(() => resolve())))
  return { port: (listening.address() as AddressInfo).port, letters, logins }
}
