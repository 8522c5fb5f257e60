-- Names of keys inside scripts: the mirror of keys.ts. ARGV[1] is the prefix; KEYS[1] only says which node runs the script.
local prefix = ARGV[1]
local keys = {}

function keys.queue(queue, part)
  return prefix .. ':{' .. queue .. '}:' .. part
end

function keys.job(queue, id)
  return prefix .. ':{' .. queue .. '}:job:' .. id
end

function keys.batch(id)
  return prefix .. ':{batch:' .. id .. '}'
end

function keys.worker(id)
  return prefix .. ':worker:' .. id
end

function keys.of_system(part)
  return prefix .. ':' .. part
end
