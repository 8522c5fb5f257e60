-- Creates or changes; another recurrence starts a new place in time. ARGV: prefix, then name, recurrence, settings, enabled (1 or 0)
-- and first run (empty: none) of each.
--@include _schedules
for at = 2, #ARGV, 5 do
  local name, recurrence, settings, enabled, first_run = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4]
  local before = redis.call('HGET', schedules.key(name), 'recurrence')
  if not before then
    redis.call('ZADD', keys.schedules('names'), now_ms, name)
    schedules.change(name, 'recurrence', recurrence, 'settings', settings, 'enabled', enabled, 'nextRun', first_run,
      'created', now_ms)
  elseif before == recurrence then
    schedules.change(name, 'settings', settings, 'enabled', enabled)
  else
    schedules.change(name, 'recurrence', recurrence, 'settings', settings, 'enabled', enabled, 'nextRun', first_run)
  end
end
