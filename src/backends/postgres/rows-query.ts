// One statement whose rows are taken as they come over the wire: texts, by position. The driver's own query asks the
// server to describe the columns of every answer and builds an object for them, which costs more than the claim of an
// idle worker. Here: parse (once per connection), bind, execute, sync, in one packet.
import type { EventEmitter } from 'node:events'
import pg from 'pg'
import type { Row } from './row.ts'

export type Value = string | number | boolean | null | Buffer

/** What a query uses of the driver's connection. */
interface Wire {
  readonly stream: { cork(): void; uncork(): void }
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

export class RowsQuery extends DriverQuery {
  readonly text: string
  readonly name: string
  readonly values: readonly Value[]
  /** Given by the driver's client or pool. */
  callback: ((error: Error | null, rows?: readonly Row[]) => void) | undefined
  readonly #rows: Row[] = []

  constructor(text: string, values: readonly Value[], name: string | undefined) {
    super(text)
    this.text = text
    this.name = name ?? ''
    this.values = values
  }

  submit(connection: Wire): null {
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
    } finally {
      connection.stream.uncork()
    }
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
    this.callback?.(null, this.#rows)
  }

  handleError(error: Error): void {
    this.callback?.(error)
  }
}

function wireValue(value: Value): string | Buffer | null {
  return value === null || typeof value === 'string' || Buffer.isBuffer(value) ? value : String(value)
}
