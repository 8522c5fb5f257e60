// The systems that can be played, by name. Loaded on use: a process needs one of them.
import type { ChaosSystem } from '../system.ts'

const LOADERS: Readonly<Record<string, () => Promise<ChaosSystem>>> = {
  millrace: async () => (await import('./millrace.ts')).millrace,
  bullmq: async () => (await import('./bullmq.ts')).bullmq,
  'pg-boss': async () => (await import('./pg-boss.ts')).pgBoss,
  'graphile-worker': async () => (await import('./graphile-worker.ts')).graphileWorker,
}

export const OURS = 'millrace'
export const SYSTEM_NAMES: readonly string[] = Object.keys(LOADERS)

export async function systemOf(name: string): Promise<ChaosSystem> {
  const load = LOADERS[name]
  if (load === undefined) throw new Error(`no system is called '${name}'; there are ${SYSTEM_NAMES.join(', ')}`)
  return await load()
}
