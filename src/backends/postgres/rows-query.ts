// One statement whose rows are taken as they come over the wire: texts, by position. The driver's own query asks the
// server to describe the columns of every answer and builds an object for them, which costs more than the claim of an
// idle worker. Here: parse (once per connection), bind, execute, sync, in one packet.
//
// It also keeps its own time limit. The driver's (`query_timeout`) assigns a function literal to a property for each
// query, and V8 puts such a function into the old generation, where it holds the query, its values and its answer until
// the next full collection: at 500 jobs a second the short collections took 3 to 7 ms instead of one.
import type { EventEmitter } from 'node:events'
import pg from 'pg'
import { systemClock } from '../../runtime/clock.ts'
import type { Timer } from '../../runtime/clock.ts'
import type { Row } from './row.ts'

export type Value = string | number | boolean | null | Buffer

/** What a query uses of the driver's connection. */
interface Wire {
  readonly stream: { cork(): void; uncork(): void; destroy(): void }
  readonly parsedStatements: Readonly<Record<string, string>>
  readonly submittedNamedStatements: Record<string, string>
  parse(query: { readonly text: string; readonly name: string }): void
  bind(config: BindConfig): void
  execute(config: { readonly portal: string; readonly rows: number }): void
  sync(): void
}

interface BindConfig {
  readonly portal: string
  readonly statement: string
  readonly values: readonly Value[]
  readonly binary: boolean
  readonly valueMapper: (value: Value) => string | Buffer | null
}

/** The driver lets only its own class of queries share a pipelined connection; what it calls is overridden below. */
const DriverQuery = pg.Query as unknown as new (text: string) => EventEmitter

const ALL_ROWS = { portal: '', rows: 0 }

export interface RowsQueryParts {
  readonly text: string
  readonly values: readonly Value[]
  /** Of the prepared statement. */
  readonly name: string | undefined
  readonly timeoutMs: number
}

export class RowsQuery extends DriverQuery {
  readonly text: string
  readonly name: string
  readonly values: readonly Value[]
  /** Given by the driver's client or pool. */
  callback: ((error: Error | null, rows?: readonly Row[]) => void) | undefined
  readonly #rows: Row[] = []
  readonly #timeoutMs: number
  #timer: Timer | undefined

  constructor({ text, values, name, timeoutMs }: RowsQueryParts) {
    super(text)
    this.text = text
    this.name = name ?? ''
    this.values = values
    this.#timeoutMs = timeoutMs
  }

  /** Answers what made it impossible; the driver then calls `handleError`. */
  submit(connection: Wire): Error | null {
    const { text, name, values } = this
    connection.stream.cork()
    try {
      const isParsed =
        name !== '' &&
        (connection.parsedStatements[name] !== undefined || connection.submittedNamedStatements[name] !== undefined)
      if (!isParsed) connection.parse({ text, name })
      if (!isParsed && name !== '') connection.submittedNamedStatements[name] = text
      connection.bind({ portal: '', statement: name, values, binary: false, valueMapper: wireValue })
      connection.execute(ALL_ROWS)
      connection.sync()
    } catch (error) {
      // A part of it may be written: nothing can be said on this connection any more.
      connection.stream.destroy()
      return error instanceof Error ? error : new Error(String(error))
    } finally {
      connection.stream.uncork()
    }
    this.#timer = systemClock.timer(this.#timeoutMs, () => {
      this.#end(new Error('Query read timeout'))
      // What was asked behind it would wait for the same answer.
      connection.stream.destroy()
    })
    return null
  }

  handleDataRow({ fields }: { readonly fields: Row }): void {
    this.#rows.push(fields)
  }

  handleCommandComplete(): void {
    // The end of the answer is when the server is ready again.
  }

  handleEmptyQuery(): void {
    // No statement of ours is empty.
  }

  handleReadyForQuery(): void {
    this.#end(null)
  }

  handleError(error: Error): void {
    this.#end(error)
  }

  #end(error: Error | null): void {
    this.#timer?.cancel()
    const { callback } = this
    this.callback = undefined
    if (error === null) callback?.(null, this.#rows)
    else callback?.(error)
  }
}

function wireValue(value: Value): string | Buffer | null {
  return value === null || typeof value === 'string' || Buffer.isBuffer(value) ? value : String(value)
}
