// Settings of the server that decide whether jobs survive; a warning at the start, because they can be meant so.
import type { Logger } from '../../runtime/logger.ts'
import type { RedisLink, RedisNode } from './link.ts'

/** Never fails: a user that may not read settings is told nothing. */
export async function warnOfSettings(link: RedisLink, logger: Logger): Promise<void> {
  try {
    await link.onMasters(async (node) => {
      const policy = (await setting(node, 'maxmemory-policy')) ?? (await inInfo(node, 'memory', 'maxmemory_policy'))
      if (policy !== undefined && policy !== 'noeviction') {
        const fields = { node: node.name, policy }
        logger.warn(fields, 'redis: maxmemory-policy evicts keys, and jobs with them: set it to noeviction')
      }
      const log = (await setting(node, 'appendonly')) ?? (await inInfo(node, 'persistence', 'aof_enabled'))
      if (log === 'no' || log === '0') {
        logger.warn({ node: node.name }, 'redis: appendonly is off: jobs since the last snapshot are lost in a crash')
      }
    })
  } catch (error) {
    logger.debug({ error }, 'redis: the settings of the server could not be read')
  }
}

async function setting(node: RedisNode, name: string): Promise<string | undefined> {
  // A managed server may not let us ask.
  const reply = await node.command('CONFIG', 'GET', name).catch(() => [])
  return (reply as readonly string[])[1]
}

async function inInfo(node: RedisNode, section: string, name: string): Promise<string | undefined> {
  const text = String(await node.command('INFO', section).catch(() => ''))
  return new RegExp(`^${name}:(.*?)\r?$`, 'm').exec(text)?.[1]
}
