-- A heartbeat. ARGV: prefix, id, running, last command seen, blocked for ms. Answers nothing for a worker that is dead or
-- unknown; else its runs to cancel (job, lease, …) and the commands it has not seen (number, command, …).
--@include _go-on
--@include _keys
--@include _time
local id, seen = ARGV[2], tonumber(ARGV[4])
local worker, commands = keys.worker(id), keys.workers('commands:' .. id)
if redis.call('HGET', worker, 'state') ~= 'alive' then return nil end
redis.call('HINCRBY', worker, 'beat', 1)
redis.call('HSET', worker, 'running', ARGV[3], 'blocked', ARGV[5], 'lastBeat', now_ms)

local unseen, passed = {}, 0
for _, line in ipairs(redis.call('LRANGE', commands, 0, -1)) do
  local no, command = string.match(line, '^(%d+) (.*)$')
  if tonumber(no) > seen then
    unseen[#unseen + 1], unseen[#unseen + 2] = no, command
  else
    passed = passed + 1
  end
end
if passed > 0 then redis.call('LTRIM', commands, passed, -1) end
return { redis.call('HGETALL', keys.workers('cancels:' .. id)), unseen }
