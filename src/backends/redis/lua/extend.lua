-- jobs.extend: moves the visibility of leases that were claimed with one. Refines memory/claim.ts (extendLeases).
--   values: ms, n, then n times: id, queue as guessed, lease    reply: positions (from 1) of leases that are lost
--@include _go-on
--@include _keys
--@include _time
--@include _record
--@include _args
local ends = now_ms + args.number()
local lost = {}
for i = 1, args.number() do
  local id, guess, lease = args.next(), args.next(), args.next()
  local queue = records.queue_of(id, guess)
  local run = queue and redis.call('HGET', keys.queue(queue, 'running'), ids.bytes(id))
  if not run or tonumber(string.sub(run, 1, 16)) ~= tonumber(lease) then
    lost[#lost + 1] = i
  elseif redis.call('HEXISTS', keys.job(queue, id), 'until') == 1 then
    redis.call('HSET', keys.job(queue, id), 'until', string.format('%.0f', ends))
    redis.call('ZADD', keys.queue(queue, 'visible'), ends, id)
  end
end
return lost
