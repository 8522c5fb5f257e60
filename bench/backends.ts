// Where jobs can be kept: which servers that takes, and what survives a crash after an acknowledged write.
// It is the same for every system, ours and theirs, and stands beside every number.

export interface BackendEntry {
  readonly durability: string
  readonly usesPostgres?: true
  readonly redis?: RedisVariant
  /** Measured only when `--only` names it. */
  readonly isOnRequest?: true
}

export type RedisVariant = 'aof' | 'no-aof'

/** Which number of jobs of a scenario counts: by what keeps them, the hybrid's truth being in PostgreSQL. */
export type Keeper = 'memory' | 'redis' | 'postgres'

const SYNCED = 'fsync, synchronous_commit on'
const AOF = 'AOF everysec'
const NO_AOF = 'no AOF'

export const BACKENDS: Readonly<Record<string, BackendEntry>> = {
  memory: { durability: 'none: memory' },
  postgres: { durability: SYNCED, usesPostgres: true },
  redis: { durability: AOF, redis: 'aof' },
  'redis-no-aof': { durability: NO_AOF, redis: 'no-aof', isOnRequest: true },
  hybrid: { durability: `${SYNCED}; Redis: ${AOF}`, usesPostgres: true, redis: 'aof' },
  'hybrid-no-aof': {
    durability: `${SYNCED}; Redis: ${NO_AOF}`,
    usesPostgres: true,
    redis: 'no-aof',
    isOnRequest: true,
  },
}

export function keeperOf(backend: string): Keeper {
  const entry = BACKENDS[backend]
  if (entry?.usesPostgres) return 'postgres'
  return entry?.redis === undefined ? 'memory' : 'redis'
}
