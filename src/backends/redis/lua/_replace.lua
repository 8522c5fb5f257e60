-- A newer request with the same unique key: a holder that has not started takes its content and, with debounce, its
-- time. Refines memory/replace.ts. `is_unplaced`: the holder was written by this very call and has no place yet.
local replacing = {}

local function header(record, content)
  return string.format('%.0f %.0f %.0f %s', record.enqueued, record.priority, record.attempts, content)
end

local function take_over(holder, job)
  local x = job.x
  local queue = queues.ensure(x.queue)
  holder.priority = tonumber(x.priority or queue.priority)
  -- One that waits for a retry has used attempts up; the newer request gets at least one.
  holder.attempts = math.max(tonumber(x.attempts or queue.attempts), records.number(holder, 'attempt') + 1)
  holder.body = header(holder, job.content)
  redis.call('HSET', keys.queue(holder.queue, 'jobs'), holder.bytes, holder.body)
  records.set(holder, 'updated', now_ms)
  records.set(holder, 'edge', 'replace 0')
  if x.unique.on == 'debounce' then
    records.set(holder, 'runAt', inserting.run_at(x))
    if records.status(holder) == 'scheduled' then
      records.set(holder, 'waits', 'delay')
    end
  end
end

-- Back to the place it was taken out of a moment ago, by its new priority and its old order.
local function come_back(holder)
  local status = records.status(holder)
  if status == 'queued' then
    places.enter_ready(holder, false)
  elseif status == 'scheduled' then
    places.enter_scheduled(holder)
  else
    queues.count(holder.queue, status, 1)
    gates.stand_in_line(holder)
  end
end

-- False: the holder has started, so the new request is only a duplicate.
function replacing.replace(holder_id, job, is_unplaced)
  local holder = records.load(job.x.queue, holder_id)
  if not holder then
    return false
  end
  local status = records.status(holder)
  if FINAL[status] or status == 'running' then
    return false
  end
  local queue = queues.ensure(job.x.queue)
  local same_priority = tonumber(job.x.priority or queue.priority) == holder.priority
  if is_unplaced or (same_priority and job.x.unique.on == 'replace') then
    take_over(holder, job)
    return true
  end
  places.leave(holder, true)
  take_over(holder, job)
  if records.run_at(holder) > now_ms and status ~= 'scheduled' and holder.f.waits ~= 'parents' then
    records.set(holder, 'waits', nil)
    gates.release_slots(holder)
    gates.admit(holder)
  else
    come_back(holder)
  end
  return true
end
