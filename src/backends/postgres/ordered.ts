// One connection on which statements follow each other without waiting for answers: the server takes them in order,
// and starts the next one while this process still reads the answer of the last. For the claims of one worker.
import pg from 'pg'
import type { ClientConfig, QueryArrayResult } from 'pg'
import type { Row, Statement, Value } from './connections.ts'

const asText = { getTypeParser: () => (value: unknown) => value }

export class OrderedConnection {
  readonly #config: () => ClientConfig
  #client: Promise<pg.Client> | undefined

  constructor(config: () => ClientConfig) {
    this.#config = config
  }

  async run({ text }: Statement, values: readonly Value[], name: string | undefined): Promise<readonly Row[]> {
    const client = await (this.#client ??= this.#connect())
    const query = { text, values: values as Value[], rowMode: 'array' as const, types: asText, ...(name && { name }) }
    const { rows } = (await client.query(query)) as QueryArrayResult<(string | null)[]>
    return rows
  }

  async close(): Promise<void> {
    const client = this.#client
    this.#client = undefined
    await client?.then(
      (open) => open.end(),
      () => undefined,
    )
  }

  async #connect(): Promise<pg.Client> {
    const client = new pg.Client({ ...this.#config(), pipeline: true })
    const lost = (): void => {
      this.#client = undefined
    }
    // Whatever was under way fails by itself; the next call makes a new connection.
    client.on('error', lost)
    client.on('end', lost)
    try {
      await client.connect()
      return client
    } catch (error) {
      lost()
      throw error
    }
  }
}
