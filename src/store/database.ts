// A store whose jobs are in a database that other programs can reach, such as pg_dump. A function, so that nobody who
// prints a backend prints a password.

export interface DatabasePlace {
  /** With its password. */
  readonly url: string
  readonly schema: string
}

export interface InDatabase {
  databasePlace(): DatabasePlace
}

export function isInDatabase<Value extends object>(backend: Value): backend is Value & InDatabase {
  return 'databasePlace' in backend && typeof backend.databasePlace === 'function'
}
