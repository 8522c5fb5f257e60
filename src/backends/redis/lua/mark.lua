-- Runs that have lasted for a while get their hash, for the eye: `jobs.get` and its like know of them without it. Only those
-- that still go on with this lease and have none.
--   values: queue, n, then n times: id, lease
--@include _keys
--@include _ids
--@include _args
local queue = args.next()
for _ = 1, args.number() do
  local id, lease = args.next(), args.number()
  local run = redis.call('HGET', keys.queue(queue, 'running'), ids.bytes(id))
  local held, worker, started = string.match(run or '', '^(%S+) (%S+) (%S+)$')
  if held and tonumber(held) == lease then
    redis.call('HSET', keys.job(queue, id), 'status', 'running', 'worker', worker, 'started', started, 'lease', held)
  end
end
