-- A new life of a worker; an id that is known, dead or alive, changes nothing. Refines memory/workers.ts.
-- ARGV: prefix, id, host, pid, queues as JSON, concurrency, how long the dead are kept, how many are forgotten at most.
--@include _go-on
--@include _keys
--@include _time
local id = ARGV[2]
local worker = keys.worker(id)
if redis.call('EXISTS', worker) == 1 then return 0 end
redis.call('HSET', worker, 'state', 'alive', 'host', ARGV[3], 'pid', ARGV[4], 'queues', ARGV[5], 'concurrency', ARGV[6],
  'beat', 0, 'running', 0, 'blocked', 0, 'started', now_ms, 'lastBeat', now_ms)
redis.call('ZADD', keys.workers('all'), now_ms, id)

-- The dead are forgotten after a while, but not before everything they held was settled.
local buried, dead = keys.workers('buried'), keys.workers('dead')
local old = redis.call('ZRANGEBYSCORE', buried, '-inf', '(' .. (now_ms - ARGV[7]), 'LIMIT', 0, ARGV[8])
for _, one in ipairs(old) do
  if not redis.call('ZSCORE', dead, one) then
    redis.call('DEL', keys.worker(one), keys.workers('commands:' .. one), keys.workers('cancels:' .. one))
    redis.call('ZREM', keys.workers('all'), one)
    redis.call('ZREM', buried, one)
  end
end
return 1
