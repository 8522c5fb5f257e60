-- Forgets lives that ended before this moment, at most so many, but not before everything they held was settled: `dead` are
-- those that may still hold jobs. Answers how many.
local function forget(until_ms, most)
  local buried, dead, forgotten = keys.workers('buried'), keys.workers('dead'), 0
  for _, one in ipairs(redis.call('ZRANGEBYSCORE', buried, '-inf', '(' .. string.format('%.0f', until_ms), 'LIMIT', 0, most)) do
    if not redis.call('ZSCORE', dead, one) then
      redis.call('DEL', keys.worker(one), keys.workers('commands:' .. one), keys.workers('cancels:' .. one))
      redis.call('ZREM', keys.workers('all'), one)
      redis.call('ZREM', buried, one)
      forgotten = forgotten + 1
    end
  end
  return forgotten
end
