// Round trips to the stores: how long each call took and how often it failed, per connection and method. The set of methods
// is that of the ports; error codes are a short list of their own, the rest is `other`.
import { CALL_BOUNDS_SECONDS } from '../core/buckets.ts'
import type { Buckets } from '../core/buckets.ts'
import { ERROR_CATALOGUE, isMillraceError } from '../core/errors.ts'
import { OTHER } from '../core/job-series.ts'
import type { CallWatch } from '../runtime/probe.ts'

export interface CallSeries {
  readonly connection: string
  /** Port and method: `jobs.claim`. */
  readonly call: string
  readonly times: Buckets
  /** By code. */
  readonly errors: Readonly<Record<string, number>>
}

const BOUNDS_MS = CALL_BOUNDS_SECONDS.map((seconds) => seconds * 1_000)
const SUM = BOUNDS_MS.length + 1

interface Cell {
  readonly connection: string
  readonly call: string
  readonly values: Float64Array
  readonly errors: Map<string, number>
}

export class CallMeter {
  readonly #cells: Cell[] = []

  /** What to tell the ends of the calls of one connection to. */
  watch(connection: string): CallWatch {
    const own = new Map<string, Cell>()
    return (call, tookMs, error) => {
      let cell = own.get(call)
      if (cell === undefined) {
        cell = { connection, call, values: new Float64Array(SUM + 1), errors: new Map() }
        own.set(call, cell)
        this.#cells.push(cell)
      }
      let bucket = 0
      while (bucket < BOUNDS_MS.length && tookMs > BOUNDS_MS[bucket]!) bucket += 1
      cell.values[bucket]! += 1
      cell.values[SUM]! += tookMs
      if (error !== undefined) countError(cell, error)
    }
  }

  series(): readonly CallSeries[] {
    return this.#cells.map(({ connection, call, values, errors }) => ({
      connection,
      call,
      times: { counts: [...values.subarray(0, SUM)], sumSeconds: values[SUM]! / 1_000 },
      errors: Object.fromEntries(errors),
    }))
  }
}

function countError({ errors }: Cell, error: unknown): void {
  const code = isMillraceError(error) && Object.hasOwn(ERROR_CATALOGUE, error.code) ? error.code : OTHER
  errors.set(code, (errors.get(code) ?? 0) + 1)
}
