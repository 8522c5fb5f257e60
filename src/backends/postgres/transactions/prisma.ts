// Prisma: the client of an interactive transaction, which is a client without the verbs for connections.
// Prisma refuses what comes after its end (P2028), so nothing has to be asked before.
import type { Candidate } from './candidate.ts'
import { notATransaction } from './refusal.ts'
import { hasMethods, property } from './shape.ts'

const NAMES = {
  library: 'Prisma',
  example: 'await prisma.$transaction(async (tx) => { await mill.in(tx).enqueue(job, input) })',
} as const
/** Closed, expired, or forgotten since. */
const TRANSACTION_API_ERROR = 'P2028'

export function recognisePrisma(value: unknown): Candidate | undefined {
  if (!hasMethods(value, '$queryRawUnsafe')) return undefined
  return {
    ...NAMES,
    state: () =>
      hasMethods(value, '$disconnect') ? { problem: 'this is the Prisma client itself and no transaction' } : 'open',
    async run(text, params) {
      try {
        return await value.$queryRawUnsafe(text, ...params)
      } catch (error) {
        if (property(error, 'code') !== TRANSACTION_API_ERROR) throw error
        throw notATransaction(NAMES, 'this Prisma transaction is over', error)
      }
    },
  }
}
