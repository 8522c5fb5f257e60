-- Ends lives for good. ARGV: prefix, then id and the beat that was seen (empty: whatever it is) of each. Answers those that
-- ended by this call. `dead` are those that may still hold jobs: due('expired') takes them out when they hold none.
--@include _go-on
--@include _keys
--@include _time
local ended = {}
for at = 2, #ARGV, 2 do
  local id, beat = ARGV[at], ARGV[at + 1]
  local worker = keys.worker(id)
  local found = redis.call('HMGET', worker, 'state', 'beat')
  if found[1] == 'alive' and (beat == '' or beat == found[2]) then
    redis.call('HSET', worker, 'state', 'dead')
    redis.call('ZADD', keys.workers('dead'), now_ms, id)
    redis.call('ZADD', keys.workers('buried'), now_ms, id)
    ended[#ended + 1] = id
  end
end
return ended
