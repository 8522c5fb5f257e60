-- Jobs in the order of their insert, for listings: `all` is a list of ids as 16 bytes, `all:base` how many were taken off its
-- head. Jobs that are gone leave their entry, which goes when it reaches the head. A job that outlives those around it
-- would keep them all: it moves to `all:old`, a zset by its number in the order. The id of a job that was deleted may be
-- inserted again: `all:gone` is a zset by the number below which its entries are of the one that is gone.
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

-- It was deleted on request: its id may come again while its entry is still in the list.
function order.erase(queue, bytes)
  local base = tonumber(redis.call('GET', keys.queue(queue, 'all:base')) or 0)
  local top = base + redis.call('LLEN', keys.queue(queue, 'all'))
  redis.call('ZADD', keys.queue(queue, 'all:gone'), top, bytes)
end

-- How many entries at the head can go; those that live on are put aside if most of the list is dead.
local function pass_over(queue, entries, base)
  local jobs, gone = keys.queue(queue, 'jobs'), keys.queue(queue, 'all:gone')
  local has_gone = redis.call('EXISTS', gone) == 1
  local sets_aside = redis.call('LLEN', keys.queue(queue, 'all')) > 2 * redis.call('HLEN', jobs) + 1000
  for i, bytes in ipairs(entries) do
    local number = base + i - 1
    local is_gone = has_gone and number < tonumber(redis.call('ZSCORE', gone, bytes) or 0)
    if not is_gone and redis.call('HEXISTS', jobs, bytes) == 1 then
      if not sets_aside then
        return i - 1
      end
      redis.call('ZADD', keys.queue(queue, 'all:old'), number, bytes)
    end
  end
  return #entries
end

function order.trim(queue)
  local all, base_key = keys.queue(queue, 'all'), keys.queue(queue, 'all:base')
  for _ = 1, TRIM_MAX do
    local entries = redis.call('LRANGE', all, 0, TRIM_LOOK - 1)
    local passed = pass_over(queue, entries, tonumber(redis.call('GET', base_key) or 0))
    if passed > 0 then
      redis.call('LTRIM', all, passed, -1)
      redis.call('ZREMRANGEBYSCORE', keys.queue(queue, 'all:gone'), '-inf', redis.call('INCRBY', base_key, passed))
    end
    if passed < TRIM_LOOK then
      return
    end
  end
end
