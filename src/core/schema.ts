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

/**
 * The same for a payload that comes out of a store, where a producer who passed nothing left `null`: a schema
 * that refuses null (`.optional()`, `.default(…)`, `void`) is given `undefined`, as the producer gave it.
 */
export function validateStored<Input, Parsed>(
  schema: StandardSchemaV1<Input, Parsed> | undefined,
  value: unknown,
  what: string,
): Parsed | Promise<Parsed> {
  if (schema === undefined || value !== null) return validate(schema, value, what)
  const ofNull = schema['~standard'].validate(null)
  return ofNull instanceof Promise
    ? ofNull.then((settled) => orOfNothing(schema, settled, what))
    : orOfNothing(schema, ofNull, what)
}

function orOfNothing<Input, Parsed>(
  schema: StandardSchemaV1<Input, Parsed>,
  ofNull: StandardSchemaV1.Result<Parsed>,
  what: string,
): Parsed | Promise<Parsed> {
  if (ofNull.issues === undefined) return ofNull.value
  const ofNothing = schema['~standard'].validate(undefined)
  // Refused both ways: what is stored is null, so that is the refusal to tell.
  const choose = (settled: StandardSchemaV1.Result<Parsed>): Parsed =>
    unwrap(settled.issues === undefined ? settled : ofNull, what)
  return ofNothing instanceof Promise ? ofNothing.then(choose) : choose(ofNothing)
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
