-- What plain inserts and claims do not need of queues (_keys-apart.lua).

-- The queue a call is about, or all of them.
function queues.names(only)
  return only ~= '' and { only } or redis.call('ZRANGE', keys.of_system('queues'), 0, -1)
end

-- A place in the lines of a queue.
function queues.next_seq(name)
  return redis.call('INCR', keys.queue(name, 'seq'))
end
