// Time, timers, randomness and ids come through src/runtime only; otherwise the simulator cannot replay a
// run from its seed. This finds every other door.
import { importsOf, isNode, nameOf } from './source.ts'
import type { Node, Source } from './source.ts'

const MEMBERS: Readonly<Record<string, readonly string[]>> = {
  Date: ['now'],
  performance: ['now'],
  process: ['hrtime'],
  Math: ['random'],
  AbortSignal: ['timeout'],
  crypto: ['randomUUID'],
}
const GLOBALS = new Set(['setTimeout', 'setInterval', 'setImmediate'])
const MODULES = new Set(['node:timers', 'node:timers/promises', 'timers', 'timers/promises'])
const IMPORTED = new Set(['randomUUID', 'hrtime'])

export function outsideWorldProblems(source: Source): readonly string[] {
  const uses = source.nodes.flatMap((node) => {
    const use = memberUse(node) ?? destructuredUse(node) ?? dateUse(node) ?? globalUse(node)
    return use === undefined ? [] : [`${source.at(node)} uses ${use}`]
  })
  const imports = importsOf(source).flatMap(({ from, names, node }) => {
    const taken = MODULES.has(from) ? from : names.find((name) => IMPORTED.has(name))
    return taken === undefined ? [] : [`${source.at(node)} imports ${taken}`]
  })
  return [...uses, ...imports]
}

function memberUse(node: Node): string | undefined {
  if (node.type !== 'MemberExpression') return undefined
  const { object, property } = node
  // `globalThis.Math.random` is the same door as `Math.random`.
  const owner = nameOf(object) ?? (isNode(object) ? nameOf(object['property']) : undefined)
  return known(owner, nameOf(property))
}

/** `const { now } = Date` */
function destructuredUse(node: Node): string | undefined {
  const { id, init } = node
  if (node.type !== 'VariableDeclarator' || !isNode(id) || !Array.isArray(id['properties'])) return undefined
  const owner = nameOf(init)
  for (const property of id['properties'] as readonly Node[]) {
    const use = known(owner, nameOf(property['key']))
    if (use !== undefined) return use
  }
  return undefined
}

/** `Date()` is the time now whatever it is given; `new Date` only without an argument. */
function dateUse(node: Node): string | undefined {
  if (nameOf(node['callee']) !== 'Date') return undefined
  if (node.type === 'CallExpression') return 'Date()'
  const withoutArguments = Array.isArray(node['arguments']) && node['arguments'].length === 0
  return node.type === 'NewExpression' && withoutArguments ? 'new Date()' : undefined
}

function globalUse(node: Node): string | undefined {
  const name = nameOf(node)
  return name !== undefined && GLOBALS.has(name) ? name : undefined
}

function known(owner: string | undefined, member: string | undefined): string | undefined {
  if (owner === undefined || member === undefined || !Object.hasOwn(MEMBERS, owner)) return undefined
  return MEMBERS[owner]?.includes(member) ? `${owner}.${member}` : undefined
}
