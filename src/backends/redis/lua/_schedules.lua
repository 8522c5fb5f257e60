-- Schedules: one hash each (recurrence and settings as JSON; enabled nextRun lastRun lastJob lastQueue created version),
-- `names` in the order in which they were made, `due` by the next run of those that are enabled. Refines memory/schedules.ts.
--@include _keys
--@include _keys-apart
--@include _time
local schedules = {}

function schedules.key(name)
  return keys.schedules('schedule:' .. name)
end

-- After every change of `enabled` and `nextRun`: an empty next run is none.
function schedules.place(name, enabled, next_run)
  if enabled == '1' and next_run ~= '' then
    redis.call('ZADD', keys.schedules('due'), next_run, name)
  else
    redis.call('ZREM', keys.schedules('due'), name)
  end
end

-- Names and values, one after the other.
function schedules.change(name, ...)
  redis.call('HSET', schedules.key(name), ...)
  redis.call('HINCRBY', schedules.key(name), 'version', 1)
  schedules.place(name, unpack(redis.call('HMGET', schedules.key(name), 'enabled', 'nextRun')))
end

-- Is it enabled and still at the run that the caller has seen?
function schedules.is_at(name, expected)
  local found = redis.call('HMGET', schedules.key(name), 'enabled', 'nextRun')
  return found[1] == '1' and found[2] == expected
end
