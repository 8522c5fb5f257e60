-- Claim: pop the next ready jobs of a queue and give each a new lease. Refines memory/claim.ts, memory/ready-queue.ts and
-- core/priority.ts (pickLane). A plain job takes no command of its own; one with a history is looked at once more.
local claiming = {}
local LANES = { 'high', 'normal', 'low' }
local LOOK_MAX = 1000
local PARKED_MS = '@parkedMs'

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
local function pop(queue, want)
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
local function take_looking(queue, want)
  local taken, seen, looked, odd = {}, {}, 0, 0
  while #taken < want and looked < LOOK_MAX do
    local popped = pop(queue, math.min(want - #taken, LOOK_MAX - looked))
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

-- Takes the marks off the entries; answers the positions of those that had one.
local function unmark(entries)
  local marked = {}
  for i = 1, #entries do
    if #entries[i] > 16 then
      marked[#marked + 1] = i
      entries[i] = string.sub(entries[i], 1, 16)
    end
  end
  return marked
end

local HISTORY = { 'attempt', 'crashes', 'runAt', 'batch', 'group', 'limitKey', 'parents', 'unique' }

-- A job that has a hash has a history: what it was waiting for is over, and its claim tells more than its body.
local function with_history(queue, key, id, index, reply)
  redis.call('HDEL', key, 'waits', 'progress', 'nextRetry', 'hidden')
  local v = redis.call('HMGET', key, unpack(HISTORY))
  if v[8] and string.sub(v[8], 1, 14) == 'until-started ' then
    library().uniques.give_back(queue.name, id, v[8])
  end
  reply[#reply + 1] = index
  for i = 1, 7 do
    reply[#reply + 1] = v[i]
  end
end

-- Do the ids rise, as those of jobs do that were enqueued one after the other?
local function is_rising(entries)
  for i = 2, #entries do
    if not (entries[i - 1] < entries[i]) then
      return false
    end
  end
  return true
end

-- A lease is the time in microseconds, or one more than the last: a store that lost its latest writes, and the counter with
-- them, mints none that somebody holds. Jobs that are returned go back in the order of their leases, then of their ids
-- (_places.lua), so jobs whose ids rise share one: to write a number takes a microsecond. Answers the first and the step.
local function mint(queue, last, entries)
  local step = is_rising(entries) and 0 or 1
  local first = math.max((tonumber(last) or 0) + 1, now_us)
  redis.call('HSET', keys.queue(queue.name, 'lanes'), 'lease', string.format('%.0f', first + step * (#entries - 1)))
  return first, step
end

-- What `running` says of each, longer than 64 bytes, so that Redis keeps a table: a packed list is searched from its start
-- for every field, which took 3 µs per job.
local function held(entries, first, step, tail)
  local running, lease = {}, string.format('%016.0f', first) .. tail
  for i = 1, #entries do
    running[2 * i - 1] = entries[i]
    running[2 * i] = step == 0 and lease or string.format('%016.0f', first + i - 1) .. tail
  end
  return running
end

-- A plain job gets no hash here: `running` says who has it since when (_record.lua).
local function start(queue, worker, lease_ms, entries, last)
  local histories, now, marked = {}, string.format('%.0f', now_ms), unmark(entries)
  local first, step = mint(queue, last, entries)
  local running = held(entries, first, step, ' ' .. worker .. ' ' .. now)
  local ends = lease_ms and string.format('%.0f', now_ms + lease_ms)
  for at = 1, ends and #entries or #marked do
    local i = ends and at or marked[at]
    local id = ids.text(entries[i])
    local key = keys.job(queue.name, id)
    redis.call('HSET', key, 'status', 'running', 'worker', worker, 'started', now, 'lease', string.sub(running[2 * i], 1, 16))
    if ends then
      redis.call('HSET', key, 'until', ends, 'hooks', '1')
      redis.call('ZADD', keys.queue(queue.name, 'visible'), ends, id)
    end
    with_history(queue, key, id, i, histories)
    running[2 * i] = running[2 * i] .. ' h'
  end
  calls.each('HSET', keys.queue(queue.name, 'running'), running)
  queues.count(queue.name, 'queued', -#entries)
  queues.count(queue.name, 'running', #entries)
  return first, step, histories
end

-- All in one text, each with a byte behind it that UTF-8 does not have. Empty where a job was torn apart by hand.
local function bodies_of(queue, entries)
  local bodies = calls.fields(keys.queue(queue.name, 'jobs'), entries)
  for i = 1, #entries do
    bodies[i] = bodies[i] or ''
  end
  bodies[#entries + 1] = ''
  return table.concat(bodies, '\255')
end

-- Answers per queue: name, whether rates apply, the first lease and the step to the next, ids in one text, bodies, histories.
local function claim_queue(queue, worker, want, lease_ms)
  local v = redis.call('HMGET', keys.queue(queue.name, 'lanes'), 'stale', 'lease')
  local looks = v[1] and tonumber(v[1]) ~= 0
  local entries = looks and take_looking(queue, want) or pop(queue, want)
  if #entries == 0 then
    return nil
  end
  local first, step, histories = start(queue, worker, lease_ms, entries, v[2])
  local rate, key_rate = queue.rate ~= '' and 1 or 0, queue.key_rate ~= '' and 1 or 0
  return { queue.name, rate, key_rate, first, step, table.concat(entries), bodies_of(queue, entries), histories }, #entries
end

-- Why this worker may not claim; else notes the number of the claim. On a Cluster the client has asked whether it is
-- alive, and each queue keeps the numbers of its own claims.
local function refusal(worker, claim_no, queue)
  if is_cluster then
    local claims = keys.queue(queue, 'claims')
    if claim_no <= tonumber(redis.call('HGET', claims, worker) or 0) then
      return 'superseded'
    end
    redis.call('HSET', claims, worker, claim_no)
    return ''
  end
  local key = keys.worker(worker)
  local v = redis.call('HMGET', key, 'state', 'claimNo')
  if v[1] ~= 'alive' then
    return 'worker-dead'
  end
  if claim_no <= tonumber(v[2] or 0) then
    return 'superseded'
  end
  redis.call('HSET', key, 'claimNo', claim_no)
  return ''
end

-- values: worker, claim number, limit, lease in ms (empty: none), queues
function claiming.claim()
  local worker, claim_no, limit, lease_ms = args.next(), args.number(), args.number(), args.number()
  local names = args.list()
  local refused = refusal(worker, claim_no, names[1])
  local claimed, paused = {}, {}
  if refused ~= '' then
    return { refused, paused, claimed }
  end
  local left = limit
  for _, name in ipairs(names) do
    local queue = queues.find(name)
    if queue and queue.paused then
      paused[#paused + 1] = name
    elseif queue and left > 0 then
      local reply, n = claim_queue(queue, worker, left, lease_ms)
      if reply then
        claimed[#claimed + 1] = reply
        left = left - n
      end
    end
  end
  if left > 0 then
    for _, name in ipairs(names) do
      redis.call('SET', keys.queue(name, 'parked'), '1', 'PX', PARKED_MS)
    end
  end
  return { refused, paused, claimed }
end
