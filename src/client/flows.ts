// Flows: a tree (or any graph) of jobs where a node runs after its children, written in one insert. A node
// object that appears twice is one job with two parents; one that contains itself is a circle.
import type { JobId } from '../core/job.ts'
import { checkKnownOptions, invalidOption } from '../core/names.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { BulkLine, Enqueuer, JobName } from './enqueue.ts'
import type { EnqueueOptions } from './enqueue-options.ts'
import type { JobHandle } from './handle.ts'
import { checkJobId } from './ids.ts'
import { checkBulkSize } from './prepare.ts'

/** Any node, where the types of one kind do not matter. */
export interface FlowShape {
  readonly job: JobName
  readonly input?: unknown
  readonly options?: EnqueueOptions
  /** Run before this one; its `onParentFailure` says what becomes of it when one does not complete. */
  readonly children?: readonly FlowShape[]
}

export interface Flow<Result> {
  /** The node that runs last. */
  readonly root: JobHandle<Result>
  /** Of every node, in the order of the tree: a node, then its children. */
  readonly handles: readonly JobHandle[]
  handleOf(node: FlowShape): JobHandle | undefined
}

export async function enqueueFlow(tree: FlowShape, enqueuer: Enqueuer, runtime: Runtime): Promise<Flow<unknown>> {
  const nodes = collect(tree)
  const ids = new Map<FlowShape, JobId>()
  // Minted first: a parent names its children before any of them is written.
  for (const node of nodes) ids.set(node, idOf(node, runtime))
  const lines = nodes.map((node): BulkLine => {
    const onFailure = node.options?.onParentFailure ?? 'fail'
    const dependsOn = [...new Set(node.children)].map((child) => ({ parent: ids.get(child)!, onFailure }))
    return [node.job, node.input, node.options, { id: ids.get(node)!, dependsOn }]
  })
  const handles = await enqueuer.many(lines, 'a flow')
  const byNode = new Map(nodes.map((node, index) => [node, handles[index]!]))
  return { root: handles[0]!, handles, handleOf: (node) => byNode.get(node) }
}

/** Each node object once, however often it appears, so a circle of objects ends here and is named later. */
function collect(tree: FlowShape): readonly FlowShape[] {
  const seen = new Set<FlowShape>()
  const open: FlowShape[] = [tree]
  while (open.length > 0) {
    const node = open.pop()!
    if (seen.has(node)) continue
    checkKnownOptions(node, ['job', 'input', 'options', 'children'], 'a flow node')
    seen.add(node)
    checkBulkSize(seen.size)
    const { children = [] } = node
    if (!Array.isArray(children)) throw invalidOption('children', children, 'an array of flow nodes')
    open.push(...[...children].reverse())
  }
  return [...seen]
}

function idOf(node: FlowShape, runtime: Runtime): JobId {
  const own = node.options?.id
  return own === undefined ? (runtime.newId() as JobId) : checkJobId(own, 'id') // newId mints UUIDs
}
