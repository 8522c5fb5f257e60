// pg: a Client or PoolClient after BEGIN. The client repeats what the server said last about its transaction
// (`getTransactionStatus`, since pg 8.21); older ones do not, and then the server is asked.
import type { Candidate, TransactionState } from './candidate.ts'
import { hasMethods, property } from './shape.ts'

const LIBRARY = 'pg'
const EXAMPLE = "await client.query('BEGIN'); await mill.in(client).enqueue(job, input)"

export function recognisePg(value: unknown): Candidate | undefined {
  if (!hasMethods(value, 'query', 'connect', 'end') || !(isPool(value) || isClient(value))) return undefined
  return {
    library: LIBRARY,
    example: isPool(value) ? `const client = await pool.connect(); ${EXAMPLE}` : EXAMPLE,
    state: () =>
      isPool(value)
        ? { problem: 'this is a pg Pool, and each of its queries may use another connection' }
        : pgState(value),
    run: async (text, params) => value.query(text, params),
  }
}

/** Also for the client that Drizzle works with; `unknown` for what is no client of pg. */
export function pgState(client: unknown): TransactionState {
  // Without a connection it would keep the question, and whoever waits for the answer, for ever.
  if (property(client, '_connected') === false) return { problem: 'this pg client is not connected' }
  if (!hasMethods(client, 'getTransactionStatus')) return 'unknown'
  const status = client.getTransactionStatus()
  // A BEGIN or a COMMIT may be on its way. What the server is asked now it answers after that.
  if (property(client, 'readyForQuery') === false) return 'unknown'
  // In `E` only a rollback works, and the server says so better than we could.
  if (status === 'T' || status === 'E') return 'open'
  return status === 'I' ? { problem: 'this pg client has no open transaction' } : 'unknown'
}

function isPool(value: unknown): boolean {
  return typeof property(value, 'totalCount') === 'number'
}

/** MySQL's connections have the same verbs, but not these. */
function isClient(value: unknown): boolean {
  return hasMethods(value, 'getTransactionStatus') || hasMethods(value, 'escapeLiteral')
}
