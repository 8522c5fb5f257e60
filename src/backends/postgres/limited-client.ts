// A client of the driver whose queries have an end each. Our own class of queries keeps its own time: rows-query.ts.
import type { PoolClient, QueryConfig } from 'pg'

/** The driver knows the limit of a single query; its types do not. */
type LimitedQuery = QueryConfig & { readonly query_timeout: number }

/** The same client, for promises only. */
export function limited(client: PoolClient, timeoutMs: number): PoolClient {
  const query = async (asked: string | QueryConfig, values?: unknown[]): Promise<unknown> => {
    if (typeof asked === 'object' && 'submit' in asked)
      throw new Error('a query of a class of its own has no limit here')
    const config = typeof asked === 'string' ? { text: asked } : asked
    const one: LimitedQuery = { ...config, ...(values !== undefined && { values }), query_timeout: timeoutMs }
    return client.query(one)
  }
  return Object.assign(Object.create(client) as PoolClient, { query })
}
