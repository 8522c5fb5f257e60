// A Redis server that speaks TLS alone, with certificates made on the spot, and a user who may do little: how hosted
// Redis is met.
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../../src/backends/embedded/start-postmaster.ts'
import { ensureDebianPackage } from './debian-package.ts'
import { startRedis } from './redis-server.ts'
import type { RedisProcess } from './redis-server.ts'
import { runDirectory } from './run-directory.ts'

export interface RedisTlsOptions {
  /** As in an ACL file; default: data commands, scripts and messages on keys and channels that start with `mill:`. */
  readonly rules?: string
  /** Whether clients must show a certificate too. Default false. */
  readonly asksForCertificates?: boolean
}

export interface RedisTlsServer {
  /** `rediss://`, as the user who may do little. */
  readonly url: string
  readonly username: string
  readonly password: string
  /** What a client needs to trust the server and, with `cert` and `key`, to be trusted. PEM. */
  readonly tls: ClientTls
  /** Its commands come from the administrator. */
  readonly server: RedisProcess
  stop(): Promise<void>
}

export interface ClientTls {
  readonly ca: string
  readonly cert: string
  readonly key: string
}

const OPENSSL = '/usr/bin/openssl'
const USER = 'mill'
const RULES = '~mill:* &mill:* -@all +@read +@write +@scripting +@pubsub +@connection +@transaction -@dangerous +info'

export async function startRedisTls({
  rules = RULES,
  asksForCertificates = false,
}: RedisTlsOptions = {}): Promise<RedisTlsServer> {
  const home = mkdtempSync(join(await runDirectory(), 'tls-'))
  const made = makeCertificates(home)
  const [admin, password] = [randomBytes(12).toString('hex'), randomBytes(12).toString('hex')]
  const port = await freePort()
  const server = await startRedis({
    port,
    login: { password: admin, tls: made.client },
    config: {
      port: '0',
      'tls-port': String(port),
      'tls-cert-file': made.files.cert,
      'tls-key-file': made.files.key,
      'tls-ca-cert-file': made.files.ca,
      'tls-auth-clients': asksForCertificates ? 'yes' : 'no',
      'user default': `on >${admin} ~* &* +@all`,
      [`user ${USER}`]: `on >${password} ${rules}`,
    },
  })
  return {
    url: `rediss://${USER}:${password}@127.0.0.1:${port}`,
    username: USER,
    password,
    tls: made.client,
    server,
    stop: () => server.stop(),
  }
}

interface Certificates {
  readonly client: ClientTls
  /** Of the server. */
  readonly files: { readonly ca: string; readonly cert: string; readonly key: string }
}

/** An authority, a server certificate for this address, and one for clients; good for a day. */
function makeCertificates(home: string): Certificates {
  ensureDebianPackage({ name: 'openssl', program: OPENSSL })
  const at = (name: string): string => join(home, name)
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  const openssl = (...args: readonly string[]): void => void execFileSync(OPENSSL, args, { stdio: 'pipe' })
  openssl(
    'req',
    '-x509',
    ...key,
    '-keyout',
    at('ca.key'),
    '-out',
    at('ca.crt'),
    '-days',
    '1',
    '-subj',
    '/CN=test authority',
  )
  writeFileSync(at('server.ext'), 'subjectAltName = IP:127.0.0.1, DNS:localhost\nextendedKeyUsage = serverAuth\n')
  writeFileSync(at('client.ext'), 'extendedKeyUsage = clientAuth\n')
  for (const name of ['server', 'client']) {
    openssl('req', ...key, '-keyout', at(`${name}.key`), '-out', at(`${name}.csr`), '-subj', `/CN=test ${name}`)
    const signing = ['-CA', at('ca.crt'), '-CAkey', at('ca.key'), '-CAcreateserial', '-extfile', at(`${name}.ext`)]
    openssl('x509', '-req', '-in', at(`${name}.csr`), ...signing, '-out', at(`${name}.crt`), '-days', '1')
  }
  const text = (name: string): string => readFileSync(at(name), 'utf8')
  return {
    client: { ca: text('ca.crt'), cert: text('client.crt'), key: text('client.key') },
    files: { ca: at('ca.crt'), cert: at('server.crt'), key: at('server.key') },
  }
}
