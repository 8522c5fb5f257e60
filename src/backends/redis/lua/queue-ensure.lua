-- queues.ensure for one queue: creates it with these fields if there is none. Refines memory/queues.ts.
--   values: queue, fields    reply: the fields as they are now
--@include _keys
--@include _time
--@include _calls
--@include _rings
--@include _queues
local name = ARGV[2]
local key = keys.queue(name, 'config')
if redis.call('EXISTS', key) == 0 then
  redis.call('HSET', key, 'created', string.format('%.0f', now_ms), 'version', 1, unpack(ARGV, 3))
  queues.enlist(name)
end
rings.flush()
return redis.call('HGETALL', key)
