-- A job as scripts see it. The body (hash `jobs`: id -> "enqueuedAt priority maxAttempts content") is written at insert;
-- the hash `job:<id>` holds what changes and what hangs on the job. A job that nothing happened to has no such hash:
-- no `status` means queued. Content is opaque here: record.ts makes and reads it.
--
-- Fields of the hash, absent where they say nothing (refines memory/record.ts):
--   status worker lease started finished updated attempt crashes error result progress nextRetry   for the eye
--   runAt waits ready seq            place: its time, the gate it waits for, when it became ready, its place in a line
--   cancel remove edge               what was asked for; the last change as "edge lease"
--   batch group limitKey unique parents schedule replayOf      as inserted: unique is "mode key", parents "id policy …"
--   birth pending orphan slot keySlot leads rated until        held and waited for; orphan is "parent status policy"
--   replayedAt replayedBy replayedInto rows logLease logCount
--   hooks                            1 when something hangs on its end, so that the quick way is not for it
--   hidden                           1 when its entry in a lane does not tell that there is a hash (_places.lua)
-- A running job is in the hash `running` of its queue: "lease worker started", with " h" behind it when it has hooks or a
-- history. That is all the quick way of a completion looks at, and until the run is shown (mark.lua) or something else
-- happens to it the only record of it.
--@include _ids
local records = { loaded = {}, order = {} }

local function pairs_of(flat)
  local fields = {}
  for i = 1, #flat, 2 do
    fields[flat[i]] = flat[i + 1]
  end
  return fields
end

-- The fields of a job one after the other, and whether it has a hash: those of a run without one are in `running`.
local function fields_of(queue, id, bytes)
  local flat = redis.call('HGETALL', keys.job(queue, id))
  if #flat > 0 then
    return flat, true
  end
  local run = redis.call('HGET', keys.queue(queue, 'running'), bytes)
  if run then
    local lease, worker, started = string.match(run, '^(%S+) (%S+) (%S+)')
    flat = { 'status', 'running', 'worker', worker, 'lease', lease, 'started', started }
  end
  return flat, false
end

-- nil where there is no such job.
function records.load(queue, id)
  local found = records.loaded[id]
  if found ~= nil then
    return (not found.erased) and found or nil
  end
  local bytes = ids.bytes(id)
  local body = redis.call('HGET', keys.queue(queue, 'jobs'), bytes)
  if not body then
    return nil
  end
  local flat, has_hash = fields_of(queue, id, bytes)
  return records.keep({ queue = queue, id = id, bytes = bytes, body = body, f = pairs_of(flat), dirty = {}, is_bare = not has_hash })
end

function records.keep(record)
  local enqueued, priority, attempts = string.match(record.body, '^(%d+) (%d+) (%d+) ')
  record.enqueued = tonumber(enqueued)
  record.priority = tonumber(priority)
  record.attempts = tonumber(attempts)
  records.loaded[record.id] = record
  records.order[#records.order + 1] = record
  return record
end

function records.status(record)
  return record.f.status or 'queued'
end

function records.number(record, name)
  return tonumber(record.f[name] or 0)
end

function records.run_at(record)
  return tonumber(record.f.runAt or record.enqueued)
end

-- nil takes the field away.
function records.set(record, name, value)
  if value ~= nil and type(value) ~= 'string' then
    value = string.format('%.0f', value)
  end
  if record.f[name] ~= value then
    record.f[name] = value
    record.dirty[name] = true
  end
end

local HOOKS = { 'batch', 'group', 'limitKey', 'unique', 'slot', 'keySlot', 'kids', 'cancel', 'remove', 'rows', 'until', 'pending' }

local function hooks_of(record)
  for _, name in ipairs(HOOKS) do
    if record.f[name] then
      return '1'
    end
  end
  return nil
end

-- Its first hash: what `running` alone told goes into it, and whoever claims a job that waits must learn of it.
local function begin_hash(record)
  for name in pairs(record.f) do
    record.dirty[name] = true
  end
  if record.f.status == 'queued' and not record.is_placed then
    records.set(record, 'hidden', '1')
    redis.call('HINCRBY', keys.queue(record.queue, 'lanes'), 'stale', 1)
  end
end

local function save(record)
  records.set(record, 'hooks', hooks_of(record))
  if record.f.hooks and not record.f.status then
    records.set(record, 'status', 'queued')
  end
  if record.is_bare then
    begin_hash(record)
  end
  local set, gone = {}, {}
  for name in pairs(record.dirty) do
    local value = record.f[name]
    if value == nil then
      gone[#gone + 1] = name
    else
      set[#set + 1] = name
      set[#set + 1] = value
    end
  end
  local key = keys.job(record.queue, record.id)
  if record.f.status == 'running' then
    local f = record.f
    redis.call('HSET', keys.queue(record.queue, 'running'), record.bytes, f.lease .. ' ' .. f.worker .. ' ' .. f.started .. ' h')
  end
  if #set > 0 then
    redis.call('HSET', key, unpack(set))
  end
  if #gone > 0 then
    redis.call('HDEL', key, unpack(gone))
  end
end

-- Writes what was changed, once per job, and forgets everything.
function records.flush()
  for _, record in ipairs(records.order) do
    if not record.erased and next(record.dirty) then
      save(record)
    end
  end
  records.loaded, records.order = {}, {}
end

-- A whole job for TypeScript: queue, id, body and the fields one after the other (record.ts parseReply).
function records.reply(queue, id)
  local bytes = ids.bytes(id)
  local body = redis.call('HGET', keys.queue(queue, 'jobs'), bytes)
  if not body then
    return false
  end
  local flat = fields_of(queue, id, bytes)
  return { queue, id, body, flat }
end

-- Which queue a job is in: the one that is guessed, or whichever knows it; nil where none does.
function records.queue_of(id, guess)
  local bytes = ids.bytes(id)
  if guess ~= '' and redis.call('HEXISTS', keys.queue(guess, 'jobs'), bytes) == 1 then
    return guess
  end
  if is_cluster then
    return nil -- the client has looked
  end
  records.queues = records.queues or redis.call('ZRANGE', keys.of_system('queues'), 0, -1)
  for _, queue in ipairs(records.queues) do
    if queue ~= guess and redis.call('HEXISTS', keys.queue(queue, 'jobs'), bytes) == 1 then
      return queue
    end
  end
  return nil
end
