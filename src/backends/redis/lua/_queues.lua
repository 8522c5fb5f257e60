-- Queue records as scripts need them, and the counters of statuses. Refines memory/world.ts (QueueState) and
-- core/priority.ts (laneOf). Fields of `config` are made by queue-fields.ts; an empty text is "none".
local queues = { known = {}, counted = {} }

local DEFAULT_FIELDS = { '@defaults' }
local CONFIG = { 'priority', 'attempts', 'high', 'normal', 'share', 'slots', 'keySlots', 'rate', 'keyRate', 'gated', 'paused' }

-- nil where there is no such queue.
function queues.find(name)
  local known = queues.known[name]
  if known == nil then
    local v = redis.call('HMGET', keys.queue(name, 'config'), unpack(CONFIG))
    known = v[1] and {
      name = name,
      priority = v[1],
      attempts = v[2],
      high = tonumber(v[3]),
      normal = tonumber(v[4]),
      share = tonumber(v[5]),
      slots = tonumber(v[6]),
      key_slots = tonumber(v[7]),
      rate = v[8],
      key_rate = v[9],
      gated = v[10] ~= '',
      paused = v[11] ~= '',
    }
    queues.known[name] = known
  end
  return known or nil
end

-- Registers a queue; the caller writes its fields. On a Cluster the client does it, before the first job.
function queues.enlist(name)
  if not is_cluster then
    local registry = keys.of_system('queues')
    redis.call('ZADD', registry, 'NX', redis.call('ZCARD', registry) + 1, name)
  end
  rings.ring('config')
end

-- A missing one is created with the defaults (store/queue-defaults.ts).
function queues.ensure(name)
  local found = queues.find(name)
  if found then
    return found
  end
  redis.call('HSET', keys.queue(name, 'config'), 'created', now_ms, 'version', 1, unpack(DEFAULT_FIELDS))
  queues.enlist(name)
  queues.known[name] = nil
  return queues.find(name)
end

function queues.lane(queue, priority)
  if priority <= queue.high then
    return 'high'
  end
  return priority <= queue.normal and 'normal' or 'low'
end

function queues.count(name, status, by)
  local counted = queues.counted[name]
  if not counted then
    counted = {}
    queues.counted[name] = counted
  end
  counted[status] = (counted[status] or 0) + by
end

function queues.flush()
  for name, counted in pairs(queues.counted) do
    for status, by in pairs(counted) do
      if by ~= 0 then
        redis.call('HINCRBY', keys.queue(name, 'counts'), status, by)
      end
    end
  end
  queues.counted = {}
end
