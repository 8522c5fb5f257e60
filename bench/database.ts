// The database of one measurement, seen from the measured process: made fresh, asked for its log position,
// its size and the processor time of its server.
import { randomBytes } from 'node:crypto'
import { Client } from 'pg'
import { serverCpuUs } from './server-cpu.ts'

/** Every database of a measurement starts with this; whatever does is dropped after it. */
export const DATABASE_PREFIX = 'bench_'

/** How a measured process finds the server. */
export interface ServerAddress {
  /** Of a database from which others can be made. */
  readonly url: string
  readonly pid: number
}

export class Database {
  readonly url: string
  readonly #client: Client
  readonly #serverPid: number

  private constructor(url: string, serverPid: number) {
    this.url = url
    this.#serverPid = serverPid
    this.#client = new Client({ connectionString: url, application_name: 'millrace-bench' })
  }

  /** A new one; the benchmark drops it when the measurement is over. */
  static async create({ url, pid }: ServerAddress): Promise<Database> {
    const name = `${DATABASE_PREFIX}${randomBytes(6).toString('hex')}`
    const maker = new Client({ connectionString: url })
    await maker.connect()
    await maker.query(`create database ${name}`)
    await maker.query('checkpoint')
    await maker.end()
    const place = new URL(url)
    place.pathname = name
    const database = new Database(place.href, pid)
    await database.#client.connect()
    return database
  }

  /** Bytes written to the log since the server was made. */
  async walBytes(): Promise<number> {
    return this.#number(`select pg_current_wal_insert_lsn() - '0/0'::pg_lsn as value`)
  }

  /** Bytes on disk of everything that is not the system's own: tables, their indexes and TOAST. */
  async sizeBytes(): Promise<number> {
    return this.#number(`
      select coalesce(sum(pg_total_relation_size(relation.oid)), 0) as value
      from pg_class as relation join pg_namespace as space on space.oid = relation.relnamespace
      where relation.relkind in ('r', 'm') and space.nspname !~ '^(pg_|information_schema$)'`)
  }

  /** Renews what the planner knows of the tables. */
  async analyze(): Promise<void> {
    await this.#client.query('analyze')
  }

  serverCpuUs(): number | undefined {
    return serverCpuUs(this.#serverPid)
  }

  /** Takes a snapshot and keeps it, so that nothing which dies from now on can be cleaned away. */
  async holdSnapshot(): Promise<void> {
    const holder = new Client({ connectionString: this.url, application_name: 'millrace-bench-holder' })
    // It ends with this process, or when the database is dropped under it.
    holder.on('error', () => undefined)
    await holder.connect()
    await holder.query('begin isolation level repeatable read')
    await holder.query('select pg_current_snapshot()')
  }

  close(): Promise<void> {
    return this.#client.end()
  }

  async #number(text: string): Promise<number> {
    const { rows } = await this.#client.query<{ value: string }>(text)
    return Number(rows[0]!.value)
  }
}
