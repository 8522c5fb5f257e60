// JSON as a type, and the one text form of a JSON value that does not depend on the order in which
// its keys were written: what content-based deduplication hashes.

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }

/** JSON already encoded: the form in which payloads and results cross the store seam. */
export type JsonText = string

/** Equal values give equal text: keys sorted by code unit, no spaces. The value must be real JSON. */
export function canonicalJson(value: Json): string {
  if (value === null || typeof value !== 'object') return JSON.stringify(value)
  if (isJsonArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  const fields = Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key] ?? null)}`)
  return `{${fields.join(',')}}`
}

// `Array.isArray` does not narrow readonly arrays out of a union.
function isJsonArray(value: Json): value is readonly Json[] {
  return Array.isArray(value)
}
