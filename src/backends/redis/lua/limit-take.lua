-- limits.take: one token of each bucket that applies, or none and the wait. Refines memory/limits.ts.
--   values: n, then n times: queue, key (empty: none)    reply: per request 0 or the wait in ms
--@include _go-on
--@include _keys
--@include _time
--@include _rings
--@include _queues
--@include _rates
--@include _args
local waits = {}
for i = 1, args.number() do
  local queue, key = queues.find(args.next()), args.next()
  waits[i] = queue and rates.take(rates.of(queue, key ~= '' and key or nil)) or 0
end
return waits
