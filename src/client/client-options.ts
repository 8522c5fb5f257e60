// What a client is made of, checked before anything is built of it: a mistake in a configuration file is told
// by the name of the option, not by a TypeError from somewhere inside.
import { checkKnownOptions, checkName, invalidOption } from '../core/names.ts'
import type { SecretGuard } from '../core/payload.ts'
import { PORTS } from '../store/wrap.ts'

export function checkSecrets(secrets: SecretGuard): void {
  checkKnownOptions(secrets, ['mode', 'allow'], 'secrets')
  const { mode, allow = [] } = secrets
  if (!['off', 'warn', 'refuse'].includes(mode)) throw invalidOption('secrets.mode', mode, 'off, warn or refuse')
  if (!Array.isArray(allow) || !allow.every((field) => typeof field === 'string')) {
    throw invalidOption('secrets.allow', allow, 'an array of field names')
  }
}

export function checkBackends(connections: unknown): void {
  if (!isRecord(connections)) throw invalidOption('connections', connections, 'an object of backends by name')
  for (const [name, backend] of Object.entries(connections)) {
    checkName(name, 'connection')
    if (!isBackend(backend)) throw invalidOption(`connections.${name}`, backend, 'a backend, such as memory() makes')
  }
}

export function checkDeclaredQueues(queues: unknown): void {
  if (!isRecord(queues)) throw invalidOption('queues', queues, 'an object of queue options by name')
  for (const [name, options] of Object.entries(queues)) {
    if (!isRecord(options)) throw invalidOption(`queues.${checkName(name, 'queue')}`, options, 'an object of options')
  }
}

function isBackend(value: unknown): boolean {
  return isRecord(value) && typeof value['start'] === 'function' && PORTS.every((port) => isRecord(value[port]))
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
