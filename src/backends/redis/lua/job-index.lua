-- The ids of the jobs of a queue that are, or lately were, in some statuses, from the places where such jobs are kept.
-- ARGV: prefix, queue, how many entries at most, then the statuses. Answers nothing when there are more.
--@include _keys
--@include _ids
local queue, room = ARGV[2], tonumber(ARGV[3])
local answer = {}

local function add(found)
  for _, id in ipairs(found) do answer[#answer + 1] = id end
end

for at = 4, #ARGV do
  local status = ARGV[at]
  if status == 'running' then
    local running = keys.queue(queue, 'running')
    if redis.call('HLEN', running) + #answer > room then return nil end
    for _, bytes in ipairs(redis.call('HKEYS', running)) do answer[#answer + 1] = ids.text(bytes) end
  elseif status == 'scheduled' then
    local scheduled = keys.queue(queue, 'scheduled')
    if redis.call('ZCARD', scheduled) + #answer > room then return nil end
    add(redis.call('ZRANGE', scheduled, 0, -1))
  else
    local ended = keys.queue(queue, 'ended:' .. status)
    if redis.call('LLEN', ended) + #answer > room then return nil end
    add(redis.call('LRANGE', ended, 0, -1))
  end
end
return answer
