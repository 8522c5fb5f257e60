-- ARGV: prefix, name. Answers whether there was one.
--@include _schedules
redis.call('ZREM', keys.schedules('names'), ARGV[2])
redis.call('ZREM', keys.schedules('due'), ARGV[2])
return redis.call('DEL', schedules.key(ARGV[2]))
