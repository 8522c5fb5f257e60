-- The lead of a role: free, lapsed or own, it is held until now + ttl. ARGV: prefix, role, holder, ttl in ms. Answers the holder
-- and the term, which rises with each change of holder. Stored as "<term> <untilMs> <holder>".
--@include _go-on
--@include _keys
--@include _time
local role, asks = ARGV[2], ARGV[3]
local text = redis.call('HGET', keys.workers('leaders'), role)
local term, until_ms, holder = 1, 0, asks
if text then
  term, until_ms, holder = string.match(text, '^(%d+) (%d+) (.*)$')
  if holder ~= asks and tonumber(until_ms) > now_ms then return { holder, term } end
  if holder ~= asks then term = string.format('%.0f', term + 1) end
end
redis.call('HSET', keys.workers('leaders'), role, term .. ' ' .. string.format('%.0f', now_ms + ARGV[4]) .. ' ' .. asks)
return { asks, tostring(term) }
