// A port for a server that goes down and comes back: below those that the system gives to whoever connects (from 32768
// on Linux), so that no connection takes it meanwhile. With a port from that range one restart of some thirty failed.
import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

const FROM = 20_000
const TO = 30_000
const TRIES_MAX = 100

export async function steadyPort(): Promise<number> {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const port = randomInt(FROM, TO)
    if (await isFree(port)) return port
  }
  throw new Error(`no free port from ${FROM} to ${TO}`)
}

function isFree(port: number): Promise<boolean> {
  const server = createServer()
  return new Promise((resolve) => {
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}
