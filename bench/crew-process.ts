// A worker process of a measurement. It does what it is told over IPC, one call after the other, and says
// every few milliseconds how many handlers it has started.
import { SYSTEMS } from './catalogue.ts'
import { Tally } from './crew.ts'
import type { Answer, Call } from './crew.ts'
import type { OpenSystem, RunningWorker } from './system.ts'

const TELL_MS = 5

let tally = new Tally({})
let concurrency = 1
let system: OpenSystem | undefined
let worker: RunningWorker | undefined
let told = 0

async function answer(call: Call): Promise<unknown> {
  switch (call.kind) {
    case 'open':
      concurrency = call.options.concurrency
      tally = new Tally(call.options)
      system = await (await SYSTEMS[call.system]!.load()).open(call.place)
      return undefined
    case 'start':
      worker = await system!.work({ concurrency, onStart: tally.onStart })
      return undefined
    case 'stop':
      await worker?.stop()
      tell()
      return undefined
    case 'cpu': {
      const usage = process.cpuUsage()
      return usage.user + usage.system
    }
    case 'starts':
      return tally.starts
  }
}

function tell(): void {
  if (tally.count === told) return
  told = tally.count
  send({ kind: 'handled', count: told })
}

function send(message: Answer): void {
  // A parent that has gone ends this process, see below.
  process.send?.(message, () => undefined)
}

let turn: Promise<void> = Promise.resolve()
process.on('message', (call: Call) => {
  turn = turn
    .then(() => answer(call))
    .then(
      (value) => send({ kind: 'value', value }),
      (error: unknown) =>
        send({ kind: 'error', message: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
    )
})
setInterval(tell, TELL_MS)
// The parent is done with it or gone. Exit by hand: no client may keep the process alive.
process.once('disconnect', () => process.exit(0))
