-- Names of keys inside scripts: the mirror of keys.ts. ARGV[1] is the prefix; KEYS[1] only says which node runs the script.
local prefix = ARGV[1]
local keys = {}
-- store.ts writes true on a Cluster: a script then touches keys of one queue only (_outbox.lua).
local is_cluster = false

function keys.queue(queue, part)
  return prefix .. ':{' .. queue .. '}:' .. part
end

function keys.job(queue, id)
  return prefix .. ':{' .. queue .. '}:job:' .. id
end

-- What belongs to no queue has a tag that no queue can have: names of queues begin with a letter or a digit. Workers, like
-- notes and schedules (_keys-apart.lua), are one slot.
function keys.worker(id)
  return prefix .. ':{_workers}:worker:' .. id
end

-- all, dead, leaders, commands:<id>, cancels:<id>, hands:<id>
function keys.workers(part)
  return prefix .. ':{_workers}:' .. part
end

function keys.of_system(part)
  return prefix .. ':' .. part
end
