-- Cluster only: one command that has to be done at the limit of memory too, as _go-on.lua says; its key may have no hash
-- tag, and these keys never expire. KEYS: its key. ARGV: prefix, command, values.
redis.call('PERSIST', KEYS[1])
return redis.call(ARGV[2], KEYS[1], unpack(ARGV, 3))
