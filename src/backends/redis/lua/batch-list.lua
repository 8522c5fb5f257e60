-- batches.list: newest first, before the number of the cursor. Refines memory/batches.ts (listBatches).
--   values: cursor (empty: from the newest), limit    reply: number and fields of each, one more than asked for if there are more
--@include _keys
local cursor, limit = ARGV[2], tonumber(ARGV[3])
local last = cursor == '' and '+inf' or '(' .. cursor
local found = redis.call('ZREVRANGEBYSCORE', keys.of_system('batches'), last, '-inf', 'WITHSCORES', 'LIMIT', 0, limit + 1)
local reply = {}
for i = 1, #found, 2 do
  reply[#reply + 1] = found[i]
  reply[#reply + 1] = found[i + 1]
  reply[#reply + 1] = redis.call('HGETALL', keys.batch(found[i]))
end
return reply
