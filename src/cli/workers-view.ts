// Who works, on which host: supervisors with their processes, and workers that nobody supervises.
import { isLive } from '../core/liveness.ts'
import type { SeenWorker } from '../observability/crew.ts'
import type { ChildStatus, PoolStatus, SupervisorRecord } from '../supervisor/fleet.ts'
import { CliError } from './cli-error.ts'
import type { Output } from './output.ts'

export interface Crew {
  readonly supervisors: readonly SupervisorRecord[]
  /** Started with `millrace work` or `mill.work()`. */
  readonly alone: readonly SeenWorker[]
}

export function crewOf(supervisors: readonly SupervisorRecord[], workers: readonly SeenWorker[], nowMs: number): Crew {
  const supervised = new Set(childrenOf(supervisors).flatMap(({ child }) => child.workerIds))
  // A supervisor delivers notices itself: that worker is a part of it, and nobody's to stop.
  const isOwn = ({ host, pid }: SeenWorker): boolean => supervisors.some((one) => one.host === host && one.pid === pid)
  const isAlone = (worker: SeenWorker): boolean => !supervised.has(worker.id) && !isOwn(worker)
  return { supervisors, alone: workers.filter((worker) => isLive(worker, nowMs) && isAlone(worker)) }
}

interface SeenChild {
  readonly supervisor: SupervisorRecord
  readonly pool: PoolStatus
  readonly child: ChildStatus
}

export function childrenOf(supervisors: readonly SupervisorRecord[]): readonly SeenChild[] {
  return supervisors.flatMap((supervisor) =>
    supervisor.pools.flatMap((pool) => pool.children.map((child) => ({ supervisor, pool, child }))),
  )
}

export type Target =
  | { readonly kind: 'supervisor'; readonly supervisor: SupervisorRecord }
  | { readonly kind: 'child'; readonly supervisor: SupervisorRecord; readonly child: ChildStatus }
  | { readonly kind: 'worker'; readonly worker: SeenWorker }

/** By id, or by any part of it that fits one alone. */
export function findTarget({ supervisors, alone }: Crew, text: string): Target {
  const all: readonly { readonly id: string; readonly target: Target }[] = [
    ...supervisors.map((supervisor) => ({ id: supervisor.id, target: { kind: 'supervisor', supervisor } as const })),
    ...childrenOf(supervisors).map(({ supervisor, child }) => ({
      id: child.id,
      target: { kind: 'child', supervisor, child } as const,
    })),
    ...alone.map((worker) => ({ id: worker.id, target: { kind: 'worker', worker } as const })),
  ]
  const exact = all.find(({ id }) => id === text)
  if (exact !== undefined) return exact.target
  const near = all.filter(({ id }) => id.includes(text))
  // A supervisor is part of the ids of its processes, and is meant when nothing else is said.
  const [only] = near.length === 1 ? near : near.filter(({ target }) => target.kind === 'supervisor')
  const many = near.filter(({ target }) => target.kind === only?.target.kind).length
  if (only !== undefined && many === 1) return only.target
  if (near.length === 0)
    throw new CliError('NOT_FOUND', `there is no supervisor, process or worker ${text}: millrace workers ls lists them`)
  throw new CliError(
    'USAGE',
    `${text} fits ${near.length}: ${near
      .slice(0, 5)
      .map(({ id }) => id)
      .join(', ')}; write more of it`,
  )
}

const MB = 1024 * 1024

export function crewText({ supervisors, alone }: Crew, out: Output): string {
  if (supervisors.length === 0 && alone.length === 0) return 'nobody works\n'
  const right = 'right' as const
  const heads = supervisors.map(({ id, host, pid, state, startedAtMs, pools }) => {
    const sizes = pools.map(
      ({ name, children, wanted, min, max, pinned, state: loop }) =>
        `${name} ${children.length}/${wanted} (${min} to ${max}${pinned ? ', by hand' : ''})${loop === 'ok' ? '' : ` ${out.paint(loop, 'red')}`}`,
    )
    return `${out.paint(id, 'bold')}  ${host} pid ${pid}  ${state}  since ${out.time(startedAtMs)}  ${sizes.join(', ')}\n`
  })
  const rows = childrenOf(supervisors)
  const children = out.table<SeenChild>(
    [
      { title: 'PROCESS', of: ({ child }) => child.id },
      { title: 'QUEUES', of: ({ child }) => child.queues.join(',') || 'all', flex: true },
      { title: 'PID', of: ({ child }) => child.pid ?? '-', align: right },
      { title: 'STATE', of: ({ child }) => child.state, style: ({ child }) => (isFine(child) ? undefined : 'yellow') },
      { title: 'RUNNING', of: ({ child }) => `${child.running}/${child.concurrency}`, align: right },
      { title: 'DONE', of: ({ child }) => child.processed, align: right },
      { title: 'FAILED', of: ({ child }) => child.failed, align: right },
      { title: 'RSS', of: ({ child }) => `${Math.round(child.rssBytes / MB)} MB`, align: right },
      { title: 'CPU', of: ({ child }) => `${Math.round(child.cpuPercent)} %`, align: right },
      { title: 'LAG', of: ({ child }) => `${Math.round(child.loopLagMs)} ms`, align: right },
      { title: 'STARTED', of: ({ child }) => out.time(child.startedAtMs) },
      { title: 'HEARD', of: ({ child }) => out.time(child.lastHeartbeatAtMs) },
    ],
    rows,
  )
  const plain = out.table<SeenWorker>(
    [
      { title: 'WORKER', of: ({ id }) => id },
      { title: 'HOST', of: ({ host }) => host },
      { title: 'PID', of: ({ pid }) => pid, align: right },
      { title: 'QUEUES', of: ({ queues }) => queues.join(','), flex: true },
      { title: 'RUNNING', of: ({ running, concurrency }) => `${running}/${concurrency}`, align: right },
      { title: 'STARTED', of: ({ startedAtMs }) => out.time(startedAtMs) },
      { title: 'HEARD', of: ({ lastBeatAtMs }) => out.time(lastBeatAtMs) },
    ],
    alone,
  )
  const parts = [
    ...(supervisors.length > 0 ? [heads.join(''), children] : []),
    ...(alone.length > 0 ? [`without a supervisor\n${plain}`] : []),
  ]
  return parts.join('\n')
}

function isFine({ state }: ChildStatus): boolean {
  return state === 'running'
}
