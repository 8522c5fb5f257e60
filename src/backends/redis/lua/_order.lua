-- Jobs in the order of their insert, for listings: `all` is a list of ids as 16 bytes, `all:base` how many were taken off its
-- head. Jobs that are gone leave their entry, which goes when it reaches the head. A job that outlives those around it
-- would keep them all: it moves to `all:old`, a zset by its number in the order.
local order = {}
local TRIM_LOOK = 100
local TRIM_MAX = 10 -- looks per call

function order.append(queue, bytes)
  redis.call('RPUSH', keys.queue(queue, 'all'), bytes)
end

-- A job goes; `known` remembers, within one script, whether there are old ones at all.
function order.drop(queue, bytes)
  order.known = order.known or {}
  if order.known[queue] == nil then
    order.known[queue] = redis.call('EXISTS', keys.queue(queue, 'all:old')) == 1
  end
  if order.known[queue] then
    redis.call('ZREM', keys.queue(queue, 'all:old'), bytes)
  end
end

-- How many entries at the head can go; those that live on are put aside if most of the list is dead.
local function pass_over(queue, entries, base)
  local jobs = keys.queue(queue, 'jobs')
  local sets_aside = redis.call('LLEN', keys.queue(queue, 'all')) > 2 * redis.call('HLEN', jobs) + 1000
  for i, bytes in ipairs(entries) do
    if redis.call('HEXISTS', jobs, bytes) == 1 then
      if not sets_aside then
        return i - 1
      end
      redis.call('ZADD', keys.queue(queue, 'all:old'), base + i - 1, bytes)
    end
  end
  return #entries
end

function order.trim(queue)
  local all, base_key = keys.queue(queue, 'all'), keys.queue(queue, 'all:base')
  for _ = 1, TRIM_MAX do
    local entries = redis.call('LRANGE', all, 0, TRIM_LOOK - 1)
    local gone = pass_over(queue, entries, tonumber(redis.call('GET', base_key) or 0))
    if gone > 0 then
      redis.call('LTRIM', all, gone, -1)
      redis.call('INCRBY', base_key, gone)
    end
    if gone < TRIM_LOOK then
      return
    end
  end
end
