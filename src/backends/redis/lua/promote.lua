-- jobs.promote: jobs whose time has come go through the gates, the earliest first; then what a change of limits left to
-- do. Refines memory/jobs.ts (promote).
--   values: queue (empty: all), limit    reply: promoted, ms to the next scheduled job (-1: none)
--@include _go-on
--@include _library
--@include _args
--@include _relimit
local names, limit, due = queues.names(args.next()), args.number(), {}
for _, name in ipairs(names) do
  local found = redis.call('ZRANGEBYSCORE', keys.queue(name, 'scheduled'), '-inf', now_ms, 'WITHSCORES', 'LIMIT', 0, limit)
  for i = 1, #found, 2 do
    due[#due + 1] = { queue = name, id = found[i], at = tonumber(found[i + 1]) }
  end
end
table.sort(due, function(a, b) return a.at < b.at or (a.at == b.at and a.id < b.id) end)
local promoted = math.min(#due, limit)
for i = 1, promoted do
  gates.readmit(records.load(due[i].queue, due[i].id))
end
promoted = promoted + relimiting.pass(names, limit - promoted)
local next_ms = -1
for _, name in ipairs(names) do
  local first = redis.call('ZRANGE', keys.queue(name, 'scheduled'), 0, 0, 'WITHSCORES')
  if first[2] then
    local wait_ms = math.max(tonumber(first[2]) - now_ms, 0)
    next_ms = next_ms < 0 and wait_ms or math.min(next_ms, wait_ms)
  end
end
flush_all()
return outbox.wrap({ promoted, next_ms })
