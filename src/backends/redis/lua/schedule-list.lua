-- Whole schedules. ARGV: prefix, then names; without any, `due` (and how many of them), or `all`, `from`, `count`.
-- Answers the clock, the earliest run that is not due yet (empty: none), then name and fields of each.
--@include _schedules
local which = ARGV[2]
local names = {}
if which == 'due' then
  names = tonumber(ARGV[3]) > 0
      and redis.call('ZRANGEBYSCORE', keys.schedules('due'), '-inf', now_ms, 'LIMIT', 0, ARGV[3]) or {}
elseif which == 'all' then
  names = redis.call('ZRANGE', keys.schedules('names'), ARGV[3], ARGV[3] + ARGV[4] - 1)
else
  names = { ARGV[3] }
end
local later = redis.call('ZRANGEBYSCORE', keys.schedules('due'), '(' .. now_ms, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
local answer = { string.format('%.0f', now_ms), later[2] and string.format('%.0f', later[2]) or '' }
for _, name in ipairs(names) do
  local fields = redis.call('HGETALL', schedules.key(name))
  if #fields > 0 then
    answer[#answer + 1] = name
    answer[#answer + 1] = fields
  end
end
return answer
