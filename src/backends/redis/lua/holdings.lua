-- jobs.holdings: fences claims of a worker up to a number, then lists its runs. Refines memory/claim.ts (listHoldings).
--   values: queue (empty: all), worker, claim number    reply: queue, id and lease of each, one after the other
--@include _go-on
--@include _keys
--@include _ids
local only, worker, claim_no = ARGV[2], ARGV[3], tonumber(ARGV[4])
local key = is_cluster and keys.queue(only, 'claims') or keys.worker(worker)
local field = is_cluster and worker or 'claimNo'
local held = {}
if not is_cluster and redis.call('EXISTS', key) == 0 then
  return held
end
if tonumber(redis.call('HGET', key, field) or 0) < claim_no then
  redis.call('HSET', key, field, claim_no)
end
if not is_cluster and tonumber(redis.call('HGET', key, 'looked') or 0) < claim_no then
  redis.call('HSET', key, 'looked', claim_no) -- nor does a claim up to it stand any more (_hand-over.lua)
end
for _, queue in ipairs(only ~= '' and { only } or redis.call('ZRANGE', keys.of_system('queues'), 0, -1)) do
  local running = redis.call('HGETALL', keys.queue(queue, 'running'))
  for i = 1, #running, 2 do
    local lease, holder = string.match(running[i + 1], '^(%S+) (%S+)')
    if holder == worker then
      held[#held + 1] = queue
      held[#held + 1] = ids.text(running[i])
      held[#held + 1] = lease
    end
  end
end
return held
