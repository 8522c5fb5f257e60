-- Taking entries off the lanes of a queue. Refines memory/ready-queue.ts and core/priority.ts (pickLane).
local lanes = {}
local LANES = { 'high', 'normal', 'low' }
local LOOK_MAX = 1000

-- core/priority.ts pickLane for many starts at once: lane numbers in order, at most `want`. `left`: jobs per lane.
local function pick(left, passed, share, want)
  local picks = {}
  while #picks < want do
    local best = (left[1] > 0 and 1) or (left[2] > 0 and 2) or (left[3] > 0 and 3)
    if not best then
      break
    end
    local lane = best
    if share > 0 then
      if left[2] > 0 and passed[2] >= share - 1 then
        lane = 2
      elseif best < 3 and left[3] > 0 and passed[3] >= math.max(share - 2, 1) then
        lane = 3
      end
    end
    for i = 1, 3 do
      passed[i] = (i == lane or left[i] == 0) and 0 or passed[i] + 1
    end
    left[lane] = left[lane] - 1
    picks[#picks + 1] = lane
  end
  return picks
end

-- Takes up to `want` entries off the lanes, in the order of starts.
function lanes.pop(queue, want)
  local left, filled, only = {}, 0, 0
  for i, lane in ipairs(LANES) do
    left[i] = redis.call('LLEN', keys.queue(queue.name, lane))
    if left[i] > 0 then
      filled, only = filled + 1, i
    end
  end
  if filled == 0 then
    return {}
  end
  if filled == 1 then
    return redis.call('LPOP', keys.queue(queue.name, LANES[only]), want)
  end
  local lanes_key = keys.queue(queue.name, 'lanes')
  local v = redis.call('HMGET', lanes_key, 'high', 'normal', 'low')
  local passed = { tonumber(v[1] or 0), tonumber(v[2] or 0), tonumber(v[3] or 0) }
  local picks = pick(left, passed, queue.share, want)
  redis.call('HSET', lanes_key, 'high', passed[1], 'normal', passed[2], 'low', passed[3])
  local taken, popped, entries = { 0, 0, 0 }, {}, {}
  for _, lane in ipairs(picks) do
    taken[lane] = taken[lane] + 1
  end
  for i, lane in ipairs(LANES) do
    popped[i] = taken[i] > 0 and redis.call('LPOP', keys.queue(queue.name, lane), taken[i]) or {}
    taken[i] = 0
  end
  for _, lane in ipairs(picks) do
    taken[lane] = taken[lane] + 1
    entries[#entries + 1] = popped[lane][taken[lane]]
  end
  return entries
end

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
function lanes.take_looking(queue, want)
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
