-- batches.seal, cancel and discard. Refines memory/batches.ts.
--   values: what, id    reply: 1, or 0 where there is no such batch (or it has jobs and cannot be discarded)
--@include _go-on
--@include _library
local what, id = ARGV[2], ARGV[3]
local key = keys.batch(id)
local batch = batches.find(id)
if not batch then
  return 0
end
if what == 'discard' then
  if batch.total > 0 then
    return 0
  end
  redis.call('DEL', key)
  redis.call('ZREM', keys.of_system('batches'), id)
  redis.call('ZREM', keys.of_system('batches:over'), id)
  redis.call('SREM', keys.of_system('batches:cancelled'), id)
  return 1
end
if what == 'cancel' and not batch.finished then
  -- A cancelled batch takes no more jobs, so it is sealed too and finishes with its last one.
  redis.call('HSET', key, 'asked', '1')
  redis.call('SADD', keys.of_system('batches:cancelled'), id)
end
if not batch.finished then
  redis.call('HSET', key, 'sealed', '1')
  batches.complete(id)
end
flush_all()
return 1
