-- The same on a Cluster, where jobs live on other nodes: the compare-and-set, and the jobs into `outbox` in the same atom.
-- They are inserted by the caller, or by the next who asks what is due; twice is once, because they have their ids. ARGV: prefix,
-- name, expected run, next run, tick, id and queue of the newest job (empty: no jobs), the jobs as JSON.
--@include _schedules
local name, expected = ARGV[2], ARGV[3]
if not schedules.is_at(name, expected) then return 'stale' end
if ARGV[6] == '' then
  schedules.change(name, 'nextRun', ARGV[4])
  return 'skipped'
end
schedules.change(name, 'nextRun', ARGV[4], 'lastRun', ARGV[5], 'lastJob', ARGV[6], 'lastQueue', ARGV[7])
redis.call('HSET', keys.schedules('outbox'), name .. ' ' .. expected, ARGV[8])
return 'fired'
