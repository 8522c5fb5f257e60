-- Only the holder frees its lead; the term stays, so that the next one is higher. ARGV: prefix, role, holder.
--@include _go-on
--@include _keys
local text = redis.call('HGET', keys.workers('leaders'), ARGV[2])
local term, holder = string.match(text or '', '^(%d+) %d+ (.*)$')
if holder ~= ARGV[3] then return 0 end
redis.call('HSET', keys.workers('leaders'), ARGV[2], term .. ' 0 ' .. holder)
return 1
