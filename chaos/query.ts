// A look into the database of a cell, past every proxy.
import pg from 'pg'
import type { Place } from './system.ts'

export async function query<Row extends object>(
  { postgres }: Place,
  text: string,
  values: readonly unknown[] = [],
): Promise<readonly Row[]> {
  const client = await connect(postgres!)
  try {
    return (await client.query<Row>(text, [...values])).rows
  } finally {
    await client.end()
  }
}

/** For a scenario that holds connections; they may be ended under it. */
export async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client(url)
  client.on('error', () => undefined) // the statement that fails says it too
  await client.connect()
  return client
}
