-- A new life of a worker; an id that is known, dead or alive, changes nothing. Refines memory/workers.ts.
-- ARGV: prefix, id, host, pid, queues as JSON, concurrency, how long the dead are kept, how many are forgotten at most.
--@include _go-on
--@include _keys
--@include _time
--@include _forget
local id = ARGV[2]
local worker = keys.worker(id)
if redis.call('EXISTS', worker) == 1 then return 0 end
redis.call('HSET', worker, 'state', 'alive', 'host', ARGV[3], 'pid', ARGV[4], 'queues', ARGV[5], 'concurrency', ARGV[6],
  'beat', 0, 'running', 0, 'blocked', 0, 'started', now_ms, 'lastBeat', now_ms)
redis.call('ZADD', keys.workers('all'), now_ms, id)

-- Each new life forgets some of the older ones.
forget(now_ms - ARGV[7], ARGV[8])
return 1
