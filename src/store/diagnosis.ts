// What `millrace doctor` asks: checks as data. The command brings those that any backend can answer; a backend
// adds its own (schema version, orphans, settings of its server) through an optional `diagnose()`.

/** `warn`: it works, and will not stay so. `fail`: something does not work. */
export type FindingLevel = 'ok' | 'warn' | 'fail'

export interface Finding {
  readonly level: FindingLevel
  /** What was found, with its numbers. */
  readonly message: string
  /** What to do now; a command or a statement where there is one. */
  readonly fix?: string
}

export interface Check {
  /** Short and stable: scripts look for it. A check of a backend takes the place of a general one of its name. */
  readonly name: string
  /** May throw, which counts as `fail`; whoever calls it bounds its time. */
  readonly run: () => Promise<Finding>
}

/** A backend that can examine itself. */
export interface Diagnosable {
  diagnose(): Promise<readonly Check[]>
}

export function isDiagnosable<Value extends object>(backend: Value): backend is Value & Diagnosable {
  return 'diagnose' in backend && typeof backend.diagnose === 'function'
}
