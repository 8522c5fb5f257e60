-- Taking entries off lanes of which some are not what they seem.
local LOOK_MAX = 1000

local function is_behind(queue)
  for _, lane in ipairs(LANES) do
    if redis.call('EXISTS', keys.queue(queue.name, lane)) == 1 then
      return true
    end
  end
  return false
end

-- While entries are there that are not what they seem, each is looked at: jobs that have gone, and jobs that got a hash
-- since (_places.lua). At most LOOK_MAX of them per call; if more are behind, whoever waits is rung for.
local function take_looking(queue, want)
  local taken, seen, looked, odd = {}, {}, 0, 0
  while #taken < want and looked < LOOK_MAX do
    local popped = lanes.pop(queue, math.min(want - #taken, LOOK_MAX - looked))
    if #popped == 0 then
      break
    end
    looked = looked + #popped
    for _, entry in ipairs(popped) do
      local bytes, id = string.sub(entry, 1, 16), ids.text(entry)
      local is_there = redis.call('HEXISTS', keys.queue(queue.name, 'jobs'), bytes) == 1
      local status, has_hash = status_of(queue.name, id, bytes)
      if not is_there or status ~= 'queued' or seen[bytes] then
        odd = odd + 1
      else
        seen[bytes] = true
        if has_hash and #entry == 16 then
          odd, entry = odd + 1, entry .. ids.MARK
        end
        taken[#taken + 1] = entry
      end
    end
  end
  local lanes_key, behind = keys.queue(queue.name, 'lanes'), is_behind(queue)
  if not behind and redis.call('HEXISTS', lanes_key, 'relimit') == 0 then
    redis.call('HDEL', lanes_key, 'stale') -- whatever was counted: nothing is left
  elseif odd > 0 then
    redis.call('HINCRBY', lanes_key, 'stale', -odd)
  end
  if behind and #taken < want then
    rings.ring('ready:' .. queue.name)
  end
  return taken
end
