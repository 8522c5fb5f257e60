-- A tick: compare-and-set of the next run and the insert of its jobs, one atom. ARGV: prefix, name, expected run, next run
-- (empty: none), 1 to insert nothing while the last job is live, the tick of the newest job, its id and queue (empty:
-- no jobs), then the jobs as insert-args.ts writes them. Answers fired, skipped or stale.
--@include _library
--@include _schedules
local name, next_run, last_job, last_queue = ARGV[2], ARGV[4], ARGV[7], ARGV[8]
if not schedules.is_at(name, ARGV[3]) then return 'stale' end

local function overlaps()
  if ARGV[5] ~= '1' then return false end
  local last = redis.call('HMGET', schedules.key(name), 'lastJob', 'lastQueue')
  local queue = last[1] and records.queue_of(last[1], last[2] or '')
  return queue and not FINAL[redis.call('HGET', keys.job(queue, last[1]), 'status') or 'queued']
end

if last_job == '' or overlaps() then
  schedules.change(name, 'nextRun', next_run)
  return 'skipped'
end
local jobs = {}
for at = 10, 9 + ARGV[9] * 3, 3 do
  jobs[#jobs + 1] = { id = ARGV[at], content = ARGV[at + 1], x = cjson.decode(ARGV[at + 2]) }
end
schedules.change(name, 'nextRun', next_run, 'lastRun', ARGV[6], 'lastJob', last_job, 'lastQueue', last_queue)
inserting.insert(jobs)
flush_all()
return 'fired'
