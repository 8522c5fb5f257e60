// What the INFO of a Redis server says, as text.

export function infoField(info: string, name: string): string {
  const line = info.split(/\r?\n/).find((one) => one.startsWith(`${name}:`))
  if (line === undefined) throw new Error(`INFO of this Redis server has no ${name}`)
  return line.slice(name.length + 1)
}

/** Whether the server is writing its log anew, or is about to. */
export function isRewriting(persistence: string): boolean {
  return ['aof_rewrite_in_progress', 'aof_rewrite_scheduled'].some((name) => infoField(persistence, name) !== '0')
}

/** Of all commands since the server started; a command that a script calls counts as the script itself does. */
export function callsIn(commandstats: string): number {
  return [...commandstats.matchAll(/^cmdstat_[^:]+:calls=(\d+)/gm)].reduce((sum, [, calls]) => sum + Number(calls), 0)
}
