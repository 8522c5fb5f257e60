-- A command to a worker, delivered with its beats. ARGV: prefix, id, command, how many are kept. Answers 0 when it is not alive.
--@include _go-on
--@include _keys
local id = ARGV[2]
local worker, commands = keys.worker(id), keys.workers('commands:' .. id)
if redis.call('HGET', worker, 'state') ~= 'alive' then return 0 end
local no = redis.call('HINCRBY', worker, 'command', 1)
redis.call('RPUSH', commands, string.format('%.0f', no) .. ' ' .. ARGV[3])
redis.call('LTRIM', commands, -ARGV[4], -1)
redis.call('PUBLISH', keys.of_system('bell'), 'control:' .. id)
return 1
