-- Taking entries off the lanes of a queue. Refines memory/ready-queue.ts and core/priority.ts (pickLane).
local lanes = {}
local LANES = { 'high', 'normal', 'low' }

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
