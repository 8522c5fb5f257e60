// What the cells run on: the Node of the peers where a peer is among them, so that all have the same, and the versions
// of everything that takes part.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { commitOf } from '../bench/commit.ts'
import { PEERS_VARIABLE, preparePeers } from '../bench/peers.ts'
import { ROOT } from '../scripts/compile.ts'
import { connect } from './query.ts'
import type { Servers } from './servers.ts'
import { OURS } from './systems/catalogue.ts'

export interface Equipment {
  /** The program that runs every process. */
  readonly node: string
  readonly nodeVersion: string
  readonly versions: Readonly<Record<string, string>>
}

export async function equip(systems: readonly string[], servers: Servers): Promise<Equipment> {
  const millrace = [versionIn('package.json'), commitOf(ROOT)].filter((part) => part !== undefined).join(' ')
  const own = { millrace, ...(await versionsOf(servers)) }
  if (systems.every((name) => name === OURS)) {
    return { node: process.execPath, nodeVersion: process.version, versions: own }
  }
  const { node, nodeVersion, directory, versions } = await preparePeers(ROOT)
  // For the peers here; the processes inherit it.
  process.env[PEERS_VARIABLE] = directory
  const used = Object.entries(versions).filter(([name]) => systems.includes(name))
  return { node, nodeVersion, versions: { ...own, ...Object.fromEntries(used) } }
}

async function versionsOf({ postgres, redis }: Servers): Promise<Readonly<Record<string, string>>> {
  const client = await connect(postgres.url)
  try {
    const { rows } = await client.query<{ server_version: string }>('show server_version')
    const info = String(await redis.command('INFO', 'server'))
    return {
      postgresql: rows[0]?.server_version ?? 'unknown',
      redis: /redis_version:(\S+)/.exec(info)?.[1] ?? 'unknown',
    }
  } finally {
    await client.end()
  }
}

function versionIn(manifest: string): string {
  // Our own manifest.
  return (JSON.parse(readFileSync(join(ROOT, manifest), 'utf8')) as { version: string }).version
}
