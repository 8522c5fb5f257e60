-- batches.create: an id that exists is left as it is. Refines memory/batches.ts.
--   values: id, fields    reply: 1 if it is new; on a Cluster the client puts it on the list of batches
--@include _keys
--@include _keys-apart
--@include _time
local id = ARGV[2]
local key = keys.batch(id)
if redis.call('EXISTS', key) == 1 then
  return 0
end
redis.call('HSET', key, 'created', string.format('%.0f', now_ms), unpack(ARGV, 3))
if not is_cluster then
  redis.call('ZADD', keys.of_system('batches'), redis.call('INCR', keys.of_system('batches:last')), id)
end
return 1
