-- After the limits or lanes of a queue were changed: ready jobs get the slots that are needed now or go back behind the
-- gate, and waiters of a gate with more room go on. Refines memory/limit-change.ts.
--
-- The lanes are set aside as `<lane>:old` and come back job by job, in their order. Numbers for their places in a line are
-- put aside with them, so that whoever comes later stands behind them.
local relimiting = {}
local OLD_LANES = { 'high', 'normal', 'low' }

local function set_aside(name)
  local ready = 0
  for _, lane in ipairs(OLD_LANES) do
    local key, old = keys.queue(name, lane), keys.queue(name, lane .. ':old')
    local n = redis.call('LLEN', key)
    ready = ready + n
    if n > 0 and redis.call('EXISTS', old) == 0 then
      redis.call('RENAME', key, old)
    elseif n > 0 then
      -- A change before the last one is through: rare, and as quick as a copy.
      for _ = 1, math.ceil(n / 1000) do
        redis.call('RPUSH', old, unpack(redis.call('LPOP', key, 1000)))
      end
    end
  end
  if ready > 0 then
    local last = redis.call('INCRBY', keys.queue(name, 'seq'), ready)
    redis.call('HSETNX', keys.queue(name, 'lanes'), 'oldSeq', last - ready + 1)
  end
end

-- Runs that go on count at once.
local function count_running(queue)
  for _, bytes in ipairs(redis.call('HKEYS', keys.queue(queue.name, 'running'))) do
    local record = records.load(queue.name, ids.text(bytes))
    if record then
      gates.take_slots(queue, record)
    end
  end
end

function relimiting.begin(name)
  local queue = queues.find(name)
  set_aside(name)
  if queue.slots or queue.key_slots then
    count_running(queue)
  end
  redis.call('HSET', keys.queue(name, 'lanes'), 'relimit', '1')
end

local function bring_back(queue, entry)
  local id = ids.text(entry)
  local record = records.load(queue.name, id)
  if not record or records.status(record) ~= 'queued' then
    redis.call('HINCRBY', keys.queue(queue.name, 'lanes'), 'stale', -1)
    return
  end
  if record.f.hidden then
    redis.call('HINCRBY', keys.queue(queue.name, 'lanes'), 'stale', -1)
    records.set(record, 'hidden', nil)
  end
  if gates.queue_slots_free(queue, record) > 0 and gates.key_slots_free(queue, record) > 0 then
    gates.take_slots(queue, record)
    record.is_placed = true
    redis.call('RPUSH', keys.queue(queue.name, queues.lane(queue, record.priority)), record.bytes .. (next(record.f) and ids.MARK or ''))
    return
  end
  queues.count(queue.name, 'queued', -1)
  -- It was ready, so its rate line is behind it: only the slots may hold it now. Behind a gate it holds none.
  records.set(record, 'rated', '1')
  gates.release_slots(record)
  record.old_seq = redis.call('HINCRBY', keys.queue(queue.name, 'lanes'), 'oldSeq', 1) - 1
  gates.admit(record)
end

local function bring_back_old(queue, max)
  local moved = 0
  for _, lane in ipairs(OLD_LANES) do
    local entries = moved < max and redis.call('LPOP', keys.queue(queue.name, lane .. ':old'), max - moved)
    for _, entry in ipairs(entries or {}) do
      bring_back(queue, entry)
      moved = moved + 1
    end
  end
  if moved > 0 then
    rings.ring_ready(queue.name)
  end
  return moved
end

local function admit_wider(queue, max)
  local admitted = 0
  for _, key in ipairs(redis.call('SMEMBERS', keys.queue(queue.name, 'lines'))) do
    admitted = admitted + gates.admit_waiting(queue, 'line:' .. key, 'key ' .. key, queue.key_slots, max - admitted)
  end
  return admitted + gates.admit_waiting(queue, 'line', 'queue', queue.slots, max - admitted)
end

local function is_left(name)
  return redis.call('HEXISTS', keys.queue(name, 'lanes'), 'relimit') == 1
end

-- One bounded pass over those queues that have something left to do. Answers how many jobs it looked at.
function relimiting.pass(names, max)
  local moved = 0
  for _, name in ipairs(names) do
    if moved < max and is_left(name) then
      local queue = queues.find(name)
      moved = moved + bring_back_old(queue, max - moved)
      moved = moved + admit_wider(queue, max - moved)
      if moved < max then
        redis.call('HDEL', keys.queue(name, 'lanes'), 'oldSeq', 'relimit')
      end
    end
  end
  return moved
end
