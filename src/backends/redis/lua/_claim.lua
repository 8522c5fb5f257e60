-- Claim: pop the next ready jobs of a queue and give each a new lease. Refines memory/claim.ts, memory/ready-queue.ts and
-- core/priority.ts (pickLane). One command per job; a job with a history is looked at once more.
local claiming = {}
local LANES = { 'high', 'normal', 'low' }
local PARKED_MS = 1500

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

-- Entries that jobs left behind are dropped; there are none as a rule, and then nobody looks.
local function take_ready(queue, want)
  local taken, bodies = {}, {}
  local lanes_key, jobs_key = keys.queue(queue.name, 'lanes'), keys.queue(queue.name, 'jobs')
  local stale = tonumber(redis.call('HGET', lanes_key, 'stale') or 0)
  while #taken < want do
    local popped = pop(queue, want - #taken)
    if #popped == 0 then
      break
    end
    for i, entry in ipairs(popped) do
      popped[i] = ids.text(entry)
    end
    local found = calls.fields(jobs_key, popped)
    if stale == 0 then
      return popped, found
    end
    local dropped = 0
    for i, id in ipairs(popped) do
      local status = found[i] and (redis.call('HGET', keys.job(queue.name, id), 'status') or 'queued')
      if status == 'queued' and not taken[id] then
        taken[#taken + 1], bodies[#bodies + 1] = id, found[i]
        taken[id] = true
      else
        dropped = dropped + 1
      end
    end
    if dropped > 0 then
      redis.call('HINCRBY', lanes_key, 'stale', -dropped)
    end
  end
  return taken, bodies
end

local HISTORY = { 'attempt', 'crashes', 'runAt', 'batch', 'group', 'limitKey', 'parents', 'unique' }

-- A job that has a status has a history: what it was waiting for is over, and its claim tells more than its body.
local function with_history(queue, key, id, index, reply)
  redis.call('HDEL', key, 'waits', 'progress', 'nextRetry')
  local v = redis.call('HMGET', key, unpack(HISTORY))
  if v[8] and string.sub(v[8], 1, 14) == 'until-started ' then
    library().uniques.give_back(queue.name, id, v[8])
  end
  reply[#reply + 1] = index
  for i = 1, 7 do
    reply[#reply + 1] = v[i]
  end
end

local function start(queue, worker, lease_ms, taken)
  local first = redis.call('INCRBY', keys.queue(queue.name, 'lease'), #taken) - #taken + 1
  local histories, running, job_prefix = {}, {}, keys.queue(queue.name, 'job:')
  local ends, now, by = lease_ms and now_ms + lease_ms, string.format('%.0f', now_ms), ' ' .. worker
  for i, id in ipairs(taken) do
    local key, lease = job_prefix .. id, string.format('%.0f', first + i - 1)
    local new = redis.call('HSET', key, 'status', 'running', 'worker', worker, 'started', now, 'lease', lease)
    local mark = ''
    if new < 4 then
      with_history(queue, key, id, i, histories)
      mark = ' h'
    end
    if ends then
      redis.call('HSET', key, 'until', ends, 'hooks', '1')
      redis.call('ZADD', keys.queue(queue.name, 'visible'), ends, id)
      mark = ' h'
    end
    running[2 * i - 1] = id
    running[2 * i] = lease .. by .. mark
  end
  calls.each('HSET', keys.queue(queue.name, 'running'), running)
  queues.count(queue.name, 'queued', -#taken)
  queues.count(queue.name, 'running', #taken)
  return first, histories
end

-- Answers per queue: name, whether rates apply, the first lease, ids, bodies, histories.
local function claim_queue(queue, worker, want, lease_ms)
  local taken, bodies = take_ready(queue, want)
  if #taken == 0 then
    return nil
  end
  local first, histories = start(queue, worker, lease_ms, taken)
  return { queue.name, queue.rate ~= '' and 1 or 0, queue.key_rate ~= '' and 1 or 0, first, taken, bodies, histories }, #taken
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
