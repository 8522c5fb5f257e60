-- Claim: pop the next ready jobs of a queue and give each a new lease. Refines memory/claim.ts. A plain job takes no command
-- of its own; one with a history is looked at once more.
local claiming = {}

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

-- A lease is the time in microseconds, or one more than the last: a store that lost its latest writes, and the counter with
-- them, mints none that somebody holds. Jobs that are returned go back in the order of their leases, then of their ids
-- (_places.lua), so jobs whose ids rise share one: to write a number takes a microsecond. Answers the first and the step.
local function mint(queue, last, entries)
  local step = 0
  for i = 2, #entries do
    if not (entries[i - 1] < entries[i]) then
      step = 1
      break
    end
  end
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

-- Empty where a job was torn apart by hand: it does not run. All in one text would take a microsecond more per job.
local function bodies_of(queue, entries)
  local bodies = calls.fields(keys.queue(queue.name, 'jobs'), entries)
  for i = 1, #entries do
    if not bodies[i] then
      bodies[i] = ''
      redis.call('HDEL', keys.queue(queue.name, 'running'), entries[i])
      queues.count(queue.name, 'running', -1)
    end
  end
  return bodies
end

-- Answers per queue: name, whether rates apply, the first lease and the step to the next, ids in one text, bodies, histories.
function claiming.take(queue, worker, want, lease_ms)
  local v = redis.call('HMGET', keys.queue(queue.name, 'lanes'), 'stale', 'lease')
  local looks = v[1] and tonumber(v[1]) ~= 0
  local entries
  if looks then
--@include _looking
    entries = take_looking(queue, want)
  else
    entries = lanes.pop(queue, want)
  end
  if #entries == 0 then
    return nil
  end
  local first, step, histories = start(queue, worker, lease_ms, entries, v[2])
  local rate, key_rate = queue.rate ~= '' and 1 or 0, queue.key_rate ~= '' and 1 or 0
  return { queue.name, rate, key_rate, first, step, table.concat(entries), bodies_of(queue, entries), histories }, #entries
end
