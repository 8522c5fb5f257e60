-- jobs.holdings: fences claims of a worker up to a number, then lists its runs. Refines memory/claim.ts (listHoldings).
--   values: worker, claim number    reply: queue, id and lease of each, one after the other
--@include _keys
local worker, claim_no = ARGV[2], tonumber(ARGV[3])
local key = keys.worker(worker)
local held = {}
if redis.call('EXISTS', key) == 0 then
  return held
end
if tonumber(redis.call('HGET', key, 'claimNo') or 0) < claim_no then
  redis.call('HSET', key, 'claimNo', claim_no)
end
for _, queue in ipairs(redis.call('ZRANGE', keys.of_system('queues'), 0, -1)) do
  local running = redis.call('HGETALL', keys.queue(queue, 'running'))
  for i = 1, #running, 2 do
    local lease, holder = string.match(running[i + 1], '^(%S+) (%S+)')
    if holder == worker then
      held[#held + 1] = queue
      held[#held + 1] = running[i]
      held[#held + 1] = lease
    end
  end
end
return held
