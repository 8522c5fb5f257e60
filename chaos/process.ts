// The program of every process of a cell: a worker or a producer of one system, with its part of the books.
import { closeSync, openSync } from 'node:fs'
import { uuidv7 } from 'uuidv7'
import { watchFailpoints } from '../src/runtime/failpoints.ts'
import { resultOf, writeLine } from './books.ts'
import { trueNowMs } from './clock.ts'
import type { Ambush, ProducerProcessSettings, Said, Settings, Told, WorkerProcessSettings } from './protocol.ts'
import type { ChaosJob, OpenProducer } from './system.ts'
import { systemOf } from './systems/catalogue.ts'

/** Credit is given so often. */
const TICK_MS = 10
/** More enqueues at once are not asked for: what is due then is withheld. */
const IN_FLIGHT_MAX = 2_000
/** Of so many jobs the first ones belong to a group, all to the same, so that they queue up behind each other. */
const ROUND = 100
const IN_GROUP = 10
const GROUP_MS = 30
const KIB = 1024

let isExhausting = false
const settings = JSON.parse(process.argv[2] ?? '{}') as Settings // written by the harness
const stop = settings.role === 'worker' ? await work(settings) : await produce(settings)
const end = (): void => void stop().then(() => process.disconnect())
// As the manual says.
process.once('SIGTERM', end)
process.on('message', (told: Told) => {
  if (told === 'stop') end()
  else if (told === 'exhaust') isExhausting = true
  else if (told === 'measure') say({ kind: 'measured', rssMaxBytes: process.resourceUsage().maxRSS * KIB })
  else if (told === 'spare') watchFailpoints(() => undefined)
  else ambush(told)
})
// A process whose harness has gone ends too.
process.on('disconnect', () => process.exit(0))
say({ kind: 'ready', nowMs: Date.now() })

async function work({ system, place, runs, pill, blocker, ...rest }: WorkerProcessSettings) {
  const worker = await (
    await systemOf(system)
  ).openWorker(place, rest, async ({ id, longMs, firstMs }) => {
    const startMs = trueNowMs()
    writeLine(runs, 'start', id, process.pid, startMs)
    if (id === pill) process.kill(process.pid, 'SIGKILL')
    if (isExhausting) exhaust()
    const ms = firstMs !== undefined && isFirstRun(runs, id) ? firstMs : longMs
    if (id === blocker) block(ms)
    else if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms))
    writeLine(runs, 'end', id, process.pid, trueNowMs(), startMs)
    return resultOf({ pid: process.pid, startMs })
  })
  return () => worker.close()
}

/** Once: whoever goes on after it is left alone. */
function ambush({ at, signal }: Ambush): void {
  watchFailpoints((name) => {
    if (name !== at) return
    watchFailpoints(() => undefined)
    process.kill(process.pid, signal)
  })
}

function block(ms: number): void {
  const untilMs = performance.now() + ms
  while (performance.now() < untilMs);
}

/** Until the process is ended for it. */
function exhaust(): never {
  const kept: unknown[] = []
  for (;;) kept.push({ kept })
}

/** Whether nobody has run this job before, in any process. */
function isFirstRun(runs: string, id: string): boolean {
  try {
    closeSync(openSync(`${runs}-${id}`, 'wx'))
    return true
  } catch {
    return false
  }
}

/** Jobs at a steady rate by the clock, each enqueued by a call of its own. */
async function produce(settings: ProducerProcessSettings): Promise<() => Promise<void>> {
  const system = await systemOf(settings.system)
  const producer = await system.openProducer(settings.place)
  const side = await system.openSideLoad?.(settings.place, settings.ledger)
  const lastOf = new Map<string, Promise<void>>()
  const startMs = performance.now()
  let offered = 0
  let inFlight = 0
  const offer = (no: number): void => {
    const group = groupOf(no, settings.groups)
    const longMs = no % settings.longEvery === 0 ? settings.longMs : 0
    const job = { id: uuidv7(), longMs: group === undefined ? longMs : GROUP_MS, ...(group !== undefined && { group }) }
    inFlight += 1
    // Jobs of a group come one after the other, so that they have an order.
    const before = group === undefined ? undefined : lastOf.get(group)
    const done = (before ?? Promise.resolve()).then(() => enqueue(producer, settings.ledger, job))
    if (group !== undefined) lastOf.set(group, done)
    void done.then(() => (inFlight -= 1))
  }
  const timer = setInterval(() => {
    const due = Math.floor(((performance.now() - startMs) * settings.ratePerS) / 1000)
    for (; offered < due && inFlight < IN_FLIGHT_MAX; offered += 1) offer(offered)
    // Nobody makes up for them: the rate stays what it is, and the books say that less was offered.
    if (offered < due) writeLine(settings.ledger, 'withheld', due - offered, Date.now())
    offered = due
  }, TICK_MS)
  return async () => {
    clearInterval(timer)
    await side?.close()
    while (inFlight > 0) await new Promise((resolve) => setTimeout(resolve, TICK_MS))
    await producer.close()
  }
}

/** An enqueue that fails is told and not repeated here: repeating is the part of the library. */
async function enqueue(producer: OpenProducer, ledger: string, job: ChaosJob): Promise<void> {
  writeLine(ledger, 'asked', job.id, Date.now(), ...(job.group === undefined ? [] : [job.group]))
  try {
    await producer.enqueue(job)
    writeLine(ledger, 'acked', job.id, Date.now())
  } catch (error) {
    say({ kind: 'refused', message: String(error) })
  }
}

function groupOf(no: number, groups: number): string | undefined {
  // Two producers share no group: between them there is no order.
  return groups > 0 && no % ROUND < IN_GROUP ? `${process.pid}-${Math.floor(no / ROUND) % groups}` : undefined
}

function say(said: Said): void {
  if (process.connected) process.send?.(said)
}
