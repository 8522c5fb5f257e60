// Programs that tests need and Debian has: installed on first use where that is possible, named where it is not.
// Nothing is started and no database cluster is made; the tests start their own.
import { execFileSync } from 'node:child_process'
import { appendFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'

export interface DebianPackage {
  readonly name: string
  /** A program that is there when the package is. */
  readonly program: string
}

const POLICY = '/usr/sbin/policy-rc.d'
const CLUSTERS = '/etc/postgresql-common/createcluster.conf'
const INSTALL_MAX_MS = 5 * 60_000

/** Resolves to nothing, or throws one sentence that says what to install. */
export function ensureDebianPackage({ name, program }: DebianPackage): void {
  if (existsSync(program)) return
  const canInstall = process.getuid?.() === 0 && existsSync('/usr/bin/apt-get')
  if (!canInstall) throw new Error(`these tests need ${program}: install the Debian package ${name}`)
  process.stderr.write(`installing the Debian package ${name} with apt-get, because ${program} is missing\n`)
  withoutServices(() => {
    try {
      install(name)
    } catch {
      // The lists of packages may be old, or there may be none.
      apt(['update', '-q'])
      install(name)
    }
  })
  if (!existsSync(program)) throw new Error(`the Debian package ${name} of this system brings no ${program}`)
}

function install(name: string): void {
  if (name.startsWith('postgresql')) {
    apt(['install', '-y', '-q', '--no-install-recommends', 'postgresql-common'])
    const isSet = /^\s*create_main_cluster\s*=/m.test(readFileSync(CLUSTERS, 'utf8'))
    if (!isSet) appendFileSync(CLUSTERS, '\ncreate_main_cluster = false\n')
  }
  apt(['install', '-y', '-q', '--no-install-recommends', name])
}

function apt(args: readonly string[]): void {
  const options = ['-o', 'DPkg::Lock::Timeout=120', '-o', 'Dpkg::Options::=--force-confold']
  execFileSync('/usr/bin/apt-get', [...options, ...args], {
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    stdio: ['ignore', 'ignore', 'pipe'],
    timeout: INSTALL_MAX_MS,
  })
}

/** Debian starts what it installs, unless this file says no. */
function withoutServices(act: () => void): void {
  const isOurs = !existsSync(POLICY)
  if (isOurs) writeFileSync(POLICY, '#!/bin/sh\nexit 101\n', { mode: 0o755 })
  try {
    act()
  } finally {
    if (isOurs) rmSync(POLICY, { force: true })
  }
}
