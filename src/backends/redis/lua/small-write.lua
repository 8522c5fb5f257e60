-- Cluster only: one command that has to be done at the limit of memory too. KEYS: its key. ARGV: prefix, command, values.
--@include _go-on
return redis.call(ARGV[2], KEYS[1], unpack(ARGV, 3))
