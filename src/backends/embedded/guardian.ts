// The entry of the guardian: a small process of its own that outlives every user of a server and stops the server
// when none is left, however they went. A user is a connection, which the system closes when the process ends;
// the one that started the guardian is its standard input until then.
import { rmSync, utimesSync } from 'node:fs'
import { createServer } from 'node:net'
import { sleep, systemClock } from '../../runtime/clock.ts'
import { tryLock } from './lock.ts'
import type { Lock } from './lock.ts'
import { stopPostmaster } from './postmaster.ts'
import { isRunning } from './processes.ts'
import { readState, removeState } from './state.ts'

export interface GuardianOrders {
  readonly data: string
  readonly state: string
  readonly lock: string
  /** Where it listens. */
  readonly address: string
  /** A directory made for the address alone. */
  readonly addressDir?: string
  readonly token: string
  readonly lingerMs: number
  readonly pgCtl: string | undefined
}

const TICK_MS = 250
const LOCK_POLL_MS = 20

async function main(orders: GuardianOrders): Promise<void> {
  const users = new Set<object>([process.stdin])
  let isStopping = false
  let idleSinceMs = 0
  const leave = (user: object): void => {
    if (users.delete(user) && users.size === 0) idleSinceMs = systemClock.monoMs()
  }
  for (const event of ['end', 'close', 'error']) process.stdin.on(event, () => leave(process.stdin))
  process.stdin.resume()
  // It ends by itself when its users have: a signal to a whole group is meant for them.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined)

  const server = createServer((user) => {
    user.on('error', () => undefined)
    if (isStopping) return void user.destroy()
    users.add(user)
    user.on('close', () => leave(user))
    user.resume()
    user.write(`${orders.token}\n`)
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(orders.address, resolve)
  })
  process.stdout.on('error', () => undefined)
  process.stdout.write('listening\n')

  const isIdle = (): boolean => users.size === 0 && systemClock.monoMs() - idleSinceMs >= orders.lingerMs
  const { lock, pid } = await untilDone(orders, isIdle)
  isStopping = true
  await end(orders, lock, pid)
}

interface Done {
  /** Undefined if another process has it. */
  readonly lock: Lock | undefined
  /** Of the server, as far as it was told. */
  readonly pid: number | undefined
}

/** Watches until there is nothing to guard. */
async function untilDone(orders: GuardianOrders, isIdle: () => boolean): Promise<Done> {
  let pid: number | undefined
  for (;;) {
    await sleep(systemClock, TICK_MS)
    const state = readState(orders.state)
    if (state?.token === orders.token) {
      pid = state.postmaster
      beat(orders)
      if (!isRunning(pid)) return { lock: takeLock(orders), pid }
    } else if (state !== undefined) {
      // Replaced, after it was frozen or its state was lost; its users will find the new one.
      return { lock: undefined, pid }
    }
    // Whoever holds the lock is starting a server and about to use it, or dies and leaves the lock to us.
    while (isIdle()) {
      const lock = takeLock(orders)
      if (lock !== undefined) return { lock, pid }
      await sleep(systemClock, LOCK_POLL_MS)
    }
  }
}

/** Where the directory was removed there is nobody to keep out. */
function takeLock({ lock }: GuardianOrders): Lock | undefined {
  try {
    return tryLock(lock)
  } catch {
    return { release: () => undefined }
  }
}

/** A guardian that the state does not name was replaced, and must leave the server alone. */
async function end(orders: GuardianOrders, lock: Lock | undefined, pid: number | undefined): Promise<never> {
  const state = readState(orders.state)
  const isInCharge = lock !== undefined && (state === undefined || state.token === orders.token)
  if (isInCharge) {
    await stopPostmaster(orders.data, { pid, pgCtl: orders.pgCtl })
    removeState(orders.state)
  }
  if (process.platform !== 'win32') rmSync(orders.addressDir ?? orders.address, { recursive: true, force: true })
  lock?.release()
  process.exit(0)
}

/** Tells who cannot ask, because it lives in another container, that this server is in use. */
function beat(orders: GuardianOrders): void {
  const nowS = systemClock.nowMs() / 1_000
  try {
    utimesSync(orders.state, nowS, nowS)
  } catch {
    // Removed in between.
  }
}

const [, , orders] = process.argv
if (orders !== undefined) await main(JSON.parse(orders) as GuardianOrders) // given by `launchGuardian`
