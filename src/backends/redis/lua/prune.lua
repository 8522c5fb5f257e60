-- jobs.prune: deletes jobs that ended long enough ago, and what is over by itself. Refines memory/jobs.ts (prune, sweep).
--   values: queue (empty: all), limit, n, then n times: queue (empty: every one that no rule names), status, ms    reply: how many jobs went
-- `ended:<status>` lists ids in the order of ending. A job that was replayed or deleted leaves its entry: it is dropped
-- with those around it.
--@include _go-on
--@include _library
--@include _args
local only, limit, deleted = args.next(), args.number(), 0
local LOOK = 100
local EARLY_MAX = 10

local function delete(queue, id, status, batch)
  local record = { queue = queue, id = id, bytes = ids.bytes(id), f = {} }
  settling.forget(record)
  queues.count(queue, status, -1)
  if batch then
    batches.forget(record, batch)
  end
  deleted = deleted + 1
end

-- Looks at the oldest entries; answers whether there may be more to delete behind them. Some may not be due although others
-- behind them are, after a step of the clock or because the job was replayed and has ended again: they stay in front.
local function prune_some(queue, status, until_ms)
  local list = keys.queue(queue, 'ended:' .. status)
  local entries = redis.call('LRANGE', list, 0, math.min(LOOK, limit - deleted) - 1)
  local over, early, kept = 0, {}, 0
  for i, id in ipairs(entries) do
    local v = redis.call('HMGET', keys.job(queue, id), 'status', 'finished', 'batch')
    if v[1] == status and tonumber(v[2]) > until_ms then
      early[#early + 1] = id
      if #early >= EARLY_MAX then
        break
      end
    else
      over, kept = i, #early
      if v[1] == status then
        delete(queue, id, status, v[3])
      end
    end
  end
  if over > 0 then
    redis.call('LTRIM', list, over, -1)
  end
  for i = kept, 1, -1 do
    redis.call('LPUSH', list, early[i])
  end
  return #entries > 0 and over == #entries
end

local function prune(queue, status, older_ms)
  local looks = 0
  while deleted < limit and looks * LOOK < limit * 10 and prune_some(queue, status, now_ms - older_ms) do
    looks = looks + 1
  end
end

local rules, named, longest = {}, {}, 0
for i = 1, args.number() do
  local rule = { queue = args.next(), status = args.next(), older = args.number() }
  rules[i] = rule
  named[rule.queue .. ' ' .. rule.status] = true
  longest = math.max(longest, rule.older)
end
local names = queues.names(only)
for _, rule in ipairs(rules) do
  for _, name in ipairs(names) do
    local applies = rule.queue == name or (rule.queue == '' and not named[name .. ' ' .. rule.status])
    if applies then
      prune(name, rule.status, rule.older)
    end
  end
end
for _, name in ipairs(names) do
  order.trim(name)
end
local function sweep_batches()
  local over = redis.call('ZRANGEBYSCORE', keys.of_system('batches:over'), '-inf', now_ms - longest, 'LIMIT', 0, limit)
  for _, id in ipairs(over) do
    redis.call('DEL', keys.batch(id), keys.batch(id) .. ':live')
    redis.call('ZREM', keys.of_system('batches:over'), id)
    redis.call('ZREM', keys.of_system('batches'), id)
  end
end

if not is_cluster then
  sweep_batches() -- on a Cluster the client does it (cluster-batches.ts)
end
flush_all()
return outbox.wrap(deleted)
