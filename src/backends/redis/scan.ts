// One bounded step over all keys under a prefix, on every master in turn: SCAN, never KEYS. A cursor names the node and how far
// it was read there; when that node is gone, the walk begins anew.
import type { RedisLink, RedisNode } from './link.ts'

export interface ScanStep {
  readonly keys: readonly string[]
  /** Null: all nodes were read to their end. */
  readonly cursor: string | null
}

/** A prefix has no character that means something in a pattern. */
export async function scanStep(
  link: Pick<RedisLink, 'onMasters'>,
  prefix: string,
  { cursor, count }: { readonly cursor: string | null; readonly count: number },
): Promise<ScanStep> {
  const nodes = [...(await link.onMasters((node) => Promise.resolve(node)))].sort(byName)
  const [name, from] = parse(cursor)
  const at = Math.max(
    nodes.findIndex((node) => node.name === name),
    0,
  )
  const node = nodes[at]
  if (node === undefined) return { keys: [], cursor: null }
  const begin = node.name === name ? from : '0'
  const reply = await node.command('SCAN', begin, 'MATCH', `${prefix}:*`, 'COUNT', count)
  const [next, keys] = reply as readonly [string, readonly string[]] // as SCAN answers
  if (next !== '0') return { keys, cursor: `${next} ${node.name}` }
  const following = nodes[at + 1]
  return { keys, cursor: following === undefined ? null : `0 ${following.name}` }
}

function byName(a: RedisNode, b: RedisNode): number {
  return a.name < b.name ? -1 : 1
}

function parse(cursor: string | null): readonly [name: string | null, from: string] {
  const found = /^(\d{1,20}) (\S{1,300})$/.exec(cursor ?? '')
  return [found?.[2] ?? null, found?.[1] ?? '0']
}
