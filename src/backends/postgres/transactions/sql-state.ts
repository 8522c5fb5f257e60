// The SQLSTATE of an error, wherever the library that threw it keeps it.
import { property } from './shape.ts'

/** pg, postgres.js, Kysely, Knex and PGlite; Drizzle, which wraps them; Prisma with a driver adapter, and without. */
const PLACES = [['code'], ['cause', 'code'], ['meta', 'driverAdapterError', 'cause', 'originalCode'], ['meta', 'code']]

export function sqlStateOfAny(error: unknown): string | undefined {
  for (const place of PLACES) {
    const code = place.reduce(property, error)
    if (typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && !/^P\d{4}$/.test(code)) return code
  }
  return undefined
}
