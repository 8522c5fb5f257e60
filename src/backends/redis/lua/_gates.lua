-- Gates and what is held at them: a job on its way to ready, and what it gives back when it leaves. Refines
-- memory/admission.ts; the order of the gates is core/gate.ts's.
--   slots   hash: `queue` and `key <key>` -> slots in use        line, line:<key>  zsets of those who wait, by priority, then seq
--   groups  hash: group -> the job that is ahead                 group:<group>     zset of the others, by seq
--   lines   set: keys that somebody waits for
local PRIORITY_STEP = 274877906944 -- 2^38: room for the numbers of a queue's life
local ADMIT_MAX = '@maintenanceBatchMax' -- of core/limits.ts, written in by store.ts

local function slots_free(queue, field, limit)
  if not limit then
    return math.huge
  end
  return limit - tonumber(redis.call('HGET', keys.queue(queue.name, 'slots'), field) or 0)
end

local function key_field(record)
  return 'key ' .. (record.f.limitKey or '')
end

function gates.key_slots_free(queue, record)
  if record.f.keySlot or not record.f.limitKey then
    return math.huge
  end
  return slots_free(queue, key_field(record), queue.key_slots)
end

function gates.queue_slots_free(queue, record)
  return record.f.slot and math.huge or slots_free(queue, 'queue', queue.slots)
end

local function take(record, flag, field)
  records.set(record, flag, '1')
  redis.call('HINCRBY', keys.queue(record.queue, 'slots'), field, 1)
end

function gates.take_key_slot(queue, record)
  if record.f.limitKey and queue.key_slots and not record.f.keySlot then
    take(record, 'keySlot', key_field(record))
  end
end

-- Also for a job that was past the gate when a limit was set: it counts against it.
function gates.take_slots(queue, record)
  gates.take_key_slot(queue, record)
  if queue.slots and not record.f.slot then
    take(record, 'slot', 'queue')
  end
end

local function take_group(record)
  if record.f.group and not record.f.leads then
    redis.call('HSET', keys.queue(record.queue, 'groups'), record.f.group, record.id)
    records.set(record, 'leads', '1')
  end
end

-- A place in the rate line, reserved once per job and only when nothing but the rate could hold it.
local function reserve_rate(queue, record)
  if record.f.rated then
    return 0
  end
  local wait_ms = 0
  for _, bucket in ipairs(rates.of(queue, record.f.limitKey)) do
    wait_ms = math.max(wait_ms, rates.reserve(bucket))
    records.set(record, 'rated', '1')
  end
  return wait_ms
end

local function is_group_busy(record)
  if not record.f.group or record.f.leads then
    return false
  end
  return redis.call('HEXISTS', keys.queue(record.queue, 'groups'), record.f.group) == 1
end

local function score(record, seq)
  return string.format('%.0f', record.priority * PRIORITY_STEP + seq)
end

-- Stands in the line of a gate, by the priority it has now and the place it has had.
function gates.stand_in_line(record)
  local waits, seq = record.f.waits, records.number(record, 'seq')
  if waits == 'group' then
    redis.call('ZADD', keys.queue(record.queue, 'group:' .. record.f.group), seq, record.id)
  elseif waits == 'queue-slot' then
    redis.call('ZADD', keys.queue(record.queue, 'line'), score(record, seq), record.id)
  elseif waits == 'key-slot' then
    redis.call('SADD', keys.queue(record.queue, 'lines'), record.f.limitKey)
    redis.call('ZADD', keys.queue(record.queue, 'line:' .. record.f.limitKey), score(record, seq), record.id)
  elseif record.f.orphan then
    redis.call('SADD', keys.queue(record.queue, 'orphans'), record.id)
  end
end

local function block(queue, record, gate)
  records.set(record, 'waits', gate)
  records.set(record, 'seq', record.old_seq or queues.next_seq(record.queue))
  if gate == 'queue-slot' or gate == 'key-slot' then
    take_group(record)
  end
  if gate == 'queue-slot' then
    gates.take_key_slot(queue, record)
  end
  places.arrive(record, 'blocked')
  gates.stand_in_line(record)
end

local function schedule(record, run_at, reason)
  if reason ~= 'delay' or not record.f.waits then
    records.set(record, 'waits', reason)
  end
  records.set(record, 'runAt', run_at)
  places.enter_scheduled(record)
end

-- Puts a job that is in no place into the place its gates allow.
function gates.admit(record)
  local queue = queues.ensure(record.queue)
  local run_at = records.run_at(record)
  if records.number(record, 'pending') > 0 then
    return block(queue, record, 'parents')
  end
  if run_at > now_ms then
    return schedule(record, run_at, 'delay')
  end
  local wait_ms = reserve_rate(queue, record)
  if wait_ms > 0 then
    return schedule(record, now_ms + wait_ms, 'rate')
  end
  if is_group_busy(record) then
    return block(queue, record, 'group')
  end
  if gates.key_slots_free(queue, record) <= 0 then
    return block(queue, record, 'key-slot')
  end
  if gates.queue_slots_free(queue, record) <= 0 then
    return block(queue, record, 'queue-slot')
  end
  take_group(record)
  gates.take_slots(queue, record)
  places.enter_ready(record, false)
end

-- Takes a blocked job out of its line and sends it through the gates again.
function gates.readmit(record)
  places.leave(record)
  records.set(record, 'waits', nil)
  gates.admit(record)
end

-- Lets waiters of a line go on while there is room, at most `max` of them; a waiter may stop at another gate, so one
-- free slot may let several go on. Answers how many.
function gates.admit_waiting(queue, line, field, limit, max)
  local admitted = 0
  while admitted < max and slots_free(queue, field, limit) > 0 do
    local first = redis.call('ZRANGE', keys.queue(queue.name, line), 0, 0)[1]
    if not first then
      break
    end
    gates.readmit(records.load(queue.name, first))
    admitted = admitted + 1
  end
  return admitted
end

local function admit_next(queue, line, field, limit)
  if gates.admit_waiting(queue, line, field, limit, ADMIT_MAX) >= ADMIT_MAX then
    redis.call('HSET', keys.queue(queue.name, 'lanes'), 'relimit', '1')
  end
end

local function give_back(record, flag, field)
  records.set(record, flag, nil)
  local slots = keys.queue(record.queue, 'slots')
  if redis.call('HINCRBY', slots, field, -1) <= 0 then
    redis.call('HDEL', slots, field)
  end
end

-- Gives back the slots, the key's first; those who wait for them go on.
function gates.release_slots(record)
  local queue = queues.ensure(record.queue)
  if record.f.keySlot then
    give_back(record, 'keySlot', key_field(record))
    admit_next(queue, 'line:' .. record.f.limitKey, key_field(record), queue.key_slots)
  end
  if record.f.slot then
    give_back(record, 'slot', 'queue')
    admit_next(queue, 'line', 'queue', queue.slots)
  end
end

-- Gives the group to the next in line.
function gates.release_group(record)
  local group = record.f.group
  if not group or not record.f.leads then
    return
  end
  records.set(record, 'leads', nil)
  local next_id = redis.call('ZRANGE', keys.queue(record.queue, 'group:' .. group), 0, 0)[1]
  if not next_id then
    redis.call('HDEL', keys.queue(record.queue, 'groups'), group)
    return
  end
  redis.call('HSET', keys.queue(record.queue, 'groups'), group, next_id)
  local following = records.load(record.queue, next_id)
  records.set(following, 'leads', '1')
  gates.readmit(following)
end
