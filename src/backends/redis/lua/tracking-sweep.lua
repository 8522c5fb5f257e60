-- Takes away what belongs to no job of this queue. A job is there while it has a body or runs; both are asked for in the same
-- atom, and whatever makes a job writes its body first, so nothing of a live job is ever touched.
-- ARGV: prefix, queue, dry run (0, 1), then kind and name of each: `job` and an id, or `unique` and a key. In a dry run a job comes once
-- for each of its keys, as `job`, `job:attempts`, `job:logs`: nothing goes with the first that is seen. Answers how many keys were dead.
--@include _go-on
--@include _keys
--@include _ids
local queue, is_dry, dead = ARGV[2], ARGV[3] == '1', 0

local function is_there(id)
  local bytes = ids.bytes(id)
  return redis.call('HEXISTS', keys.queue(queue, 'jobs'), bytes) == 1 or redis.call('HEXISTS', keys.queue(queue, 'running'), bytes) == 1
end

local function take(...)
  dead = dead + redis.call(is_dry and 'EXISTS' or 'DEL', ...)
end

for at = 4, #ARGV, 2 do
  local kind, name = ARGV[at], ARGV[at + 1]
  if kind ~= 'unique' then
    local key = keys.job(queue, name)
    if is_dry and not is_there(name) then
      take(key .. string.sub(kind, 4))
    elseif not is_there(name) then
      take(key, key .. ':attempts', key .. ':logs')
    end
  else
    local key = keys.queue(queue, 'unique:' .. name)
    local id, mode = string.match(redis.call('GET', key) or '', '^(%S+) (%S+) %S+$')
    -- One that is held for a time ends by itself, also when its job is gone.
    if id and mode ~= 'for-a-time' and not is_there(id) then
      take(key)
    end
  end
end
return dead
