// Servers that are more than one, or speak TLS: a failover through Sentinel, and certificates.
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { freePort } from '../../src/backends/embedded/start-postmaster.ts'
import { createMillrace, defineJob, redis as redisBackend } from '../../src/index.ts'
import { withoutThread } from '../stores/place.ts'
import { runDirectory } from '../support/run-directory.ts'
import { newName, until, useRedis } from './support.ts'

const redis = useRedis()

test(
  'D1 after a failover the same processes go on with the new primary, and the same jobs',
  { timeout: 60_000 },
  async () => {
    const primary = await redis.server({ config: { 'repl-diskless-sync-delay': '0' } })
    const replica = await redis.server({ config: { replicaof: `127.0.0.1 ${primary.port}` } })
    const isInStep = async () => String(await primary.command('INFO', 'replication')).includes('state=online')
    await until(isInStep, 'the replica', 10_000)
    const sentinel = await redis.server({
      isSentinel: true,
      config: {
        'sentinel monitor': `main 127.0.0.1 ${primary.port} 1`,
        'sentinel down-after-milliseconds': 'main 300',
        'sentinel failover-timeout': 'main 3000',
      },
    })
    const knowsReplica = async () =>
      String(await sentinel.command('SENTINEL', 'REPLICAS', 'main')).includes(`${replica.port}`)
    await until(knowsReplica, 'the sentinel to find the replica', 15_000)

    const job = defineJob({ name: 'job', run: () => 'done' })
    const server = { sentinel: { name: 'main', urls: [sentinel.url] } }
    const mill = await createMillrace({ jobs: [job], backend: withoutThread(redisBackend(server)) })
    await mill.work()
    expect(await mill.enqueueAndWait(job, undefined)).toBe('done')
    const later = await mill.enqueue(job, undefined, { delay: '4s' })
    await primary.command('WAIT', 1, 1_000)
    await primary.kill()
    expect(await later.result({ timeout: '30s' })).toBe('done')
    expect(((await replica.command('ROLE')) as unknown[])[0]).toBe('master')
    expect(await mill.enqueueAndWait(job, undefined)).toBe('done')
    await mill.stop()
  },
)

test('TLS: a certificate that is known is taken, and another is refused with a word about it', async () => {
  const dir = await runDirectory()
  const [key, cert] = [join(dir, `${newName()}.key`), join(dir, `${newName()}.crt`)]
  const subject = ['-subj', '/CN=millrace', '-addext', 'subjectAltName=IP:127.0.0.1']
  const made = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-keyout', key, '-out', cert, ...subject]
  execFileSync('openssl', made, { stdio: 'ignore' })
  const port = await freePort()
  await redis.server({
    config: {
      'tls-port': String(port),
      'tls-cert-file': cert,
      'tls-key-file': key,
      'tls-ca-cert-file': cert,
      'tls-auth-clients': 'no',
    },
  })
  const url = `rediss://127.0.0.1:${port}`
  for (const tls of [{ ca: readFileSync(cert, 'utf8') }, { rejectUnauthorized: false }]) {
    const link = redis.link({ url, tls })
    await link.connect()
    expect(await link.command('PING')).toBe('PONG')
  }
  await expect(redis.link({ url }).connect()).rejects.toMatchObject({ code: 'STORE_REFUSED', message: /TLS/ })
})
