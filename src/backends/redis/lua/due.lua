-- jobs.due: what maintenance has to settle, as a list. Refines memory/jobs.ts (listDue).
--   values: queue (empty: all), kind, limit, on a Cluster the dead workers    reply: whole jobs (_record.lua reply)
--@include _keys
--@include _keys-apart
--@include _time
--@include _record
local only, kind, limit = ARGV[2], ARGV[3], tonumber(ARGV[4])
local names = only ~= '' and { only } or redis.call('ZRANGE', keys.of_system('queues'), 0, -1)
local jobs = {}

local function add(queue, id)
  local reply = #jobs < limit and records.reply(queue, id)
  if reply then
    jobs[#jobs + 1] = reply
  end
end

-- A claim with a visibility of its own outlives the worker that made it. Dead workers that hold nothing are forgotten.
local function add_held_by_dead()
  local dead, holds = {}, {}
  for _, worker in ipairs(is_cluster and { unpack(ARGV, 5) } or redis.call('ZRANGE', keys.workers('dead'), 0, -1)) do
    dead[worker] = true
  end
  for _, queue in ipairs(next(dead) and names or {}) do
    local running = redis.call('HGETALL', keys.queue(queue, 'running'))
    for i = 1, #running, 2 do
      local worker = string.match(running[i + 1], '^%S+ (%S+)')
      if dead[worker] then
        holds[worker] = true
        local id = ids.text(running[i])
        if #jobs < limit and redis.call('HEXISTS', keys.job(queue, id), 'until') == 0 then
          add(queue, id)
        end
      end
    end
  end
  for worker in pairs(dead) do
    if not holds[worker] and not is_cluster then
      redis.call('ZREM', keys.workers('dead'), worker)
    end
  end
end

local function add_expired()
  add_held_by_dead()
  for _, queue in ipairs(names) do
    local lapsed = redis.call('ZRANGEBYSCORE', keys.queue(queue, 'visible'), '-inf', now_ms, 'LIMIT', 0, limit)
    for _, id in ipairs(lapsed) do
      add(queue, id)
    end
  end
end

local function add_orphaned()
  for _, queue in ipairs(names) do
    for _, id in ipairs(redis.call('SRANDMEMBER', keys.queue(queue, 'orphans'), limit)) do
      add(queue, id)
    end
  end
end

-- Those that run and know it already are passed over; which ones are looked at is left to chance, so that none is missed for ever.
local function add_of_cancelled()
  for _, batch in ipairs(redis.call('SMEMBERS', keys.of_system('batches:cancelled'))) do
    for _, member in ipairs(redis.call('SRANDMEMBER', keys.batch(batch) .. ':live', limit + 1000)) do
      local queue, id = string.match(member, '^(%S+) (%S+)$')
      if #jobs < limit and redis.call('HEXISTS', keys.job(queue, id), 'cancel') == 0 then
        add(queue, id)
      end
    end
  end
end

if kind == 'expired' then
  add_expired()
elseif kind == 'orphaned' then
  add_orphaned()
else
  add_of_cancelled()
end
return jobs
