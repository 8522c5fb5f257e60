-- Of one queue: how many jobs there are in each status, and since when its oldest ready job is ready. ARGV: prefix, queue,
-- how many entries of a lane to look at, then the statuses. Answers the numbers, then the moment (empty: none is ready),
-- or nothing where there is no such queue.
--@include _keys
--@include _ids
local queue, look = ARGV[2], tonumber(ARGV[3])
if redis.call('EXISTS', keys.queue(queue, 'config')) == 0 then return nil end
local statuses = {}
for at = 4, #ARGV do statuses[#statuses + 1] = ARGV[at] end
local answer = redis.call('HMGET', keys.queue(queue, 'counts'), unpack(statuses))
for at = 1, #statuses do answer[at] = answer[at] or '0' end

-- Entries of jobs that left their lane another way stay in it until a claim comes by.
local function oldest_of(lane)
  for _, entry in ipairs(redis.call('LRANGE', keys.queue(queue, lane), 0, look - 1)) do
    local found = redis.call('HMGET', keys.job(queue, ids.text(entry)), 'status', 'ready')
    if (found[1] or 'queued') == 'queued' then
      local body = redis.call('HGET', keys.queue(queue, 'jobs'), string.sub(entry, 1, 16))
      if body then return tonumber(found[2] or string.match(body, '^%d+')) end
    end
  end
  return nil
end

local oldest
for _, lane in ipairs({ 'high', 'normal', 'low', 'high:old', 'normal:old', 'low:old' }) do
  local at = oldest_of(lane)
  if at and (not oldest or at < oldest) then oldest = at end
end
answer[#answer + 1] = oldest and string.format('%.0f', oldest) or ''
return answer
