-- Commands and cancellations for workers that nobody knows: only a worker that has a record can beat and read them.
-- ARGV: prefix, dry run (0, 1), then ids. Answers how many keys were dead.
--@include _go-on
--@include _keys
local is_dry, dead = ARGV[2] == '1', 0
for at = 3, #ARGV do
  local id = ARGV[at]
  if redis.call('EXISTS', keys.worker(id)) == 0 then
    dead = dead + redis.call(is_dry and 'EXISTS' or 'DEL', keys.workers('commands:' .. id), keys.workers('cancels:' .. id))
  end
end
return dead
