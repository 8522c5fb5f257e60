-- Moving a job from one place to another, and everything that counts places. Refines memory/places.ts: no other part
-- changes `status`, but for the quick ways of claim and completion.
--
-- A lane is a list of ids as bytes (_ids.lua), with a mark where the job has a hash, and changing something in its middle
-- costs its length. So a ready job that goes leaves its entry behind, and one that gets its first hash while it waits
-- leaves its entry without a mark (`hidden`). `stale` of `lanes` counts both, and while there are any a claim looks at what it pops.

local function leave_line(record)
  local f = record.f
  if f.orphan then
    redis.call('SREM', keys.queue(record.queue, 'orphans'), record.id)
  end
  if f.waits == 'group' then
    redis.call('ZREM', keys.queue(record.queue, 'group:' .. f.group), record.id)
  elseif f.waits == 'queue-slot' then
    redis.call('ZREM', keys.queue(record.queue, 'line'), record.id)
  elseif f.waits == 'key-slot' then
    places.leave_key_line(record)
  end
end

function places.leave_key_line(record)
  local key = record.f.limitKey
  local line = keys.queue(record.queue, 'line:' .. key)
  redis.call('ZREM', line, record.id)
  if redis.call('EXISTS', line) == 0 then
    redis.call('SREM', keys.queue(record.queue, 'lines'), key)
  end
end

local function stop_running(record)
  local worker = record.f.worker
  redis.call('HDEL', keys.queue(record.queue, 'running'), record.bytes)
  if record.f['until'] then
    redis.call('ZREM', keys.queue(record.queue, 'visible'), record.id)
    records.set(record, 'until', nil)
  end
  if record.f.cancel then
    outbox.uncancel(record, worker)
  end
end

local function count_stale(record, by)
  redis.call('HINCRBY', keys.queue(record.queue, 'lanes'), 'stale', by)
end

-- Its entry stays behind; a hidden one is counted already.
local function abandon_entry(record)
  if not record.f.hidden then
    count_stale(record, 1)
  end
  records.set(record, 'hidden', nil)
end

-- Its entry goes too: for a job that will be ready again, which would otherwise start at its old place. Where it is not
-- found it counts as left behind, so that the job cannot start twice.
local function leave_lane(record)
  local lane = queues.lane(queues.find(record.queue), record.priority)
  local own, other = record.bytes .. ids.MARK, record.bytes
  if record.is_bare or record.f.hidden then
    own, other = other, own
  end
  for _, entry in ipairs({ own, other }) do
    for _, part in ipairs({ lane, lane .. ':old' }) do
      if redis.call('LREM', keys.queue(record.queue, part), 1, entry) == 1 then
        if record.f.hidden then
          count_stale(record, -1)
        end
        return records.set(record, 'hidden', nil)
      end
    end
  end
  abandon_entry(record)
end

-- Takes the job out of the place its status names. The caller puts it somewhere else at once.
function places.leave(record, comes_back)
  local status = records.status(record)
  queues.count(record.queue, status, -1)
  if status == 'queued' and comes_back then
    leave_lane(record)
  elseif status == 'queued' then
    abandon_entry(record)
  elseif status == 'scheduled' then
    redis.call('ZREM', keys.queue(record.queue, 'scheduled'), record.id)
    records.set(record, 'nextRetry', nil)
  elseif status == 'blocked' then
    leave_line(record)
  elseif status == 'running' then
    stop_running(record)
  end
end

-- Sets the status and moves the counters; the caller links the job into the place itself.
function places.arrive(record, status)
  local before = records.status(record)
  records.set(record, 'status', status)
  queues.count(record.queue, status, 1)
  if record.f.batch and (FINAL[before] or false) ~= (FINAL[status] or false) then
    batches.move(record, before, status)
  end
end

-- At the end of its lane, or, for a job that never started, back where it was: before all others.
function places.enter_ready(record, keep_place)
  records.set(record, 'waits', nil)
  places.arrive(record, 'queued')
  record.is_placed = true
  local queue = queues.find(record.queue)
  local lane = keys.queue(record.queue, queues.lane(queue, record.priority))
  if keep_place then
    places.returned[#places.returned + 1] = { lane = lane, bytes = record.bytes, lease = records.number(record, 'lease') }
  else
    records.set(record, 'ready', now_ms ~= record.enqueued and now_ms or nil)
    redis.call('RPUSH', lane, record.bytes .. ids.MARK)
  end
  rings.ring_ready(record.queue)
end

-- Jobs that come back with one call stand in the order in which they were claimed.
function places.flush()
  table.sort(places.returned, function(a, b) return a.lease > b.lease or (a.lease == b.lease and a.bytes > b.bytes) end)
  for _, one in ipairs(places.returned) do
    redis.call('LPUSH', one.lane, one.bytes .. ids.MARK)
  end
  places.returned = {}
end

function places.enter_scheduled(record)
  places.arrive(record, 'scheduled')
  local run_at = records.run_at(record)
  redis.call('ZADD', keys.queue(record.queue, 'scheduled'), run_at, record.id)
  if record.f.waits == 'retry' then
    records.set(record, 'nextRetry', run_at)
  end
  rings.ring('scheduled')
end

function places.enter_final(record, status)
  records.set(record, 'waits', nil)
  places.arrive(record, status)
  redis.call('RPUSH', keys.queue(record.queue, 'ended:' .. status), record.id)
  rings.ring_end(record.id)
end
