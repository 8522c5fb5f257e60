// Validation through Standard Schema: any library that speaks it, none that we depend on.
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { MillraceError } from './errors.ts'

/** Synchronous when the schema is; a run with a synchronous schema must not pay for a promise. */
export function validate<Input, Parsed>(
  schema: StandardSchemaV1<Input, Parsed> | undefined,
  value: unknown,
  what: string,
): Parsed | Promise<Parsed> {
  // Without a schema the type of the definition is the promise; there is nothing to check at run time.
  if (schema === undefined) return value as Parsed
  const result = schema['~standard'].validate(value)
  return result instanceof Promise ? result.then((settled) => unwrap(settled, what)) : unwrap(result, what)
}

function unwrap<Parsed>(result: StandardSchemaV1.Result<Parsed>, what: string): Parsed {
  if (result.issues === undefined) return result.value
  const issues = result.issues.slice(0, 20).map(({ message, path }) => ({ path: pathText(path), message }))
  const list = issues.map(({ path, message }) => `${path}: ${message}`).join('; ')
  throw new MillraceError('INVALID_PAYLOAD', `${what} does not fit its schema: ${list}`, { details: { issues } })
}

function pathText(path: StandardSchemaV1.Issue['path']): string {
  if (path === undefined || path.length === 0) return 'input'
  return path.map((part) => String(typeof part === 'object' ? part.key : part)).join('.')
}
