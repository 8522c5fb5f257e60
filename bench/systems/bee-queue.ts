// Bee-Queue as its README sets it up for speed: finished jobs are removed, no events are sent or listened to, jobs are
// not kept in the memory of their producer, and only a worker has the connection that blocks.
import type { Payload, System } from '../system.ts'
import { loadPeer } from '../peers.ts'

const QUEUE = 'bench'
const CLOSE_MS = 5000

interface BeeQueue {
  readonly default: new (name: string, settings: object) => Queue
}

interface Queue {
  ready(): Promise<unknown>
  createJob(data: Payload): Job
  /** Answers the jobs that could not be saved. */
  saveAll(jobs: readonly Job[]): Promise<ReadonlyMap<Job, Error>>
  checkHealth(): Promise<{ readonly waiting: number; readonly active: number; readonly delayed: number }>
  process(concurrency: number, handler: (job: { readonly data: Payload }) => Promise<void>): void
  on(event: 'error', listener: (error: Error) => void): void
  close(timeoutMs: number): Promise<void>
}

interface Job {
  save(): Promise<unknown>
}

export const beeQueue: System = {
  async open({ redisUrl }) {
    const { default: Queue } = await loadPeer<BeeQueue>('bee-queue')
    const connect = async (isWorker: boolean): Promise<Queue> => {
      const queue = new Queue(QUEUE, {
        redis: { url: redisUrl },
        isWorker,
        getEvents: false,
        sendEvents: false,
        storeJobs: false,
        removeOnSuccess: true,
        removeOnFailure: true,
      })
      queue.on('error', console.error)
      await queue.ready()
      return queue
    }
    const producer = await connect(false)
    return {
      async enqueue(payload) {
        await producer.createJob(payload).save()
      },
      async enqueueMany(payloads) {
        const failed = await producer.saveAll(payloads.map((data) => producer.createJob(data)))
        for (const [, error] of failed) throw error
      },
      async unfinished() {
        const { waiting, active, delayed } = await producer.checkHealth()
        return waiting + active + delayed
      },
      async work({ concurrency, onStart }) {
        const worker = await connect(true)
        // Bee-Queue awaits what the handler answers.
        worker.process(concurrency, async ({ data }) => onStart(data.seq))
        return { stop: () => worker.close(CLOSE_MS) }
      },
      close: () => producer.close(CLOSE_MS),
    }
  },
}
