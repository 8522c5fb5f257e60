-- ARGV: prefix, name, enabled (1 or 0), next run (empty: none). Answers whether there is such a schedule.
--@include _schedules
if redis.call('EXISTS', schedules.key(ARGV[2])) == 0 then return 0 end
schedules.change(ARGV[2], 'enabled', ARGV[3], 'nextRun', ARGV[4])
return 1
