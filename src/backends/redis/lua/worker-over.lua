-- Cluster only: workers that have been dead for so long that no claim of theirs can be under way.
-- ARGV: prefix, for how long, how many at most. Answers their ids.
--@include _keys
--@include _time
local until_ms = string.format('%.0f', now_ms - tonumber(ARGV[2]))
return redis.call('ZRANGEBYSCORE', keys.workers('dead'), '-inf', until_ms, 'LIMIT', 0, ARGV[3])
