-- The quickest way of insert: one plain job for a claim that stands, in a queue where nothing waits. The rest of the script does
-- the same by 21 commands and some fifty functions, which a server that was idle makes anew for 2 us each; this by 15, and none. Whatever
-- is not so simple goes on below. Refines memory/hand-over.ts, like _hand-over.lua; the texts are those of _claim.lua.
if ARGV[2] == 'plain' and ARGV[3] == '1' and ARGV[5] == '1' then
  local base, id = ARGV[1] .. ':{' .. ARGV[4] .. '}:', ARGV[6]
  local parked = redis.call('GET', base .. 'parked')
  local worker, claim_no = string.match(parked or '', '^(%S+) (%d+) %d+$')
  if worker then
    local priority, attempts = string.match(ARGV[7], '^(%S+) (%S+)$')
    local config = redis.call('HMGET', base .. 'config', 'priority', 'attempts', 'gated', 'paused', 'rate', 'keyRate')
    local is_simple = priority and config[1] and config[3] == '' and config[4] == ''
    local v = redis.call('HMGET', ARGV[1] .. ':{_workers}:worker:' .. worker, 'state', 'claimNo', 'answered', 'looked')
    local no, hands = tonumber(claim_no), ARGV[1] .. ':{_workers}:hands:' .. worker
    local stands = v[1] == 'alive' and tonumber(v[2]) == no and tonumber(v[3] or 0) < no and tonumber(v[4] or 0) < no
    local heard = is_simple and stands and redis.pcall('PUBSUB', 'NUMSUB', hands)
    if heard and not heard.err and heard[2] > 0 then
      local lanes = redis.call('HMGET', base .. 'lanes', 'stale', 'lease')
      local is_empty = redis.call('EXISTS', base .. 'high', base .. 'normal', base .. 'low') == 0
      if is_empty and (not lanes[1] or lanes[1] == '0') and redis.call('HEXISTS', base .. 'jobs', id) == 0 then
        local clock = redis.call('TIME')
        local now_ms = string.format('%.0f', clock[1] * 1000 + math.floor(clock[2] / 1000))
        local lease = math.max((tonumber(lanes[2]) or 0) + 1, clock[1] * 1000000 + clock[2])
        local lease_text = string.format('%.0f', lease)
        priority = priority == '-' and config[1] or priority
        attempts = attempts == '-' and config[2] or attempts
        local body = now_ms .. ' ' .. priority .. ' ' .. attempts .. ' ' .. ARGV[9]
        redis.call('HSET', base .. 'jobs', id, body)
        redis.call('RPUSH', base .. 'all', id)
        redis.call('HSET', base .. 'running', id, string.format('%016.0f', lease) .. ' ' .. worker .. ' ' .. now_ms)
        redis.call('HSET', base .. 'lanes', 'lease', lease_text)
        redis.call('HINCRBY', base .. 'counts', 'running', 1)
        redis.call('HSET', ARGV[1] .. ':{_workers}:worker:' .. worker, 'answered', claim_no)
        local text = string.format('%08x-%04x-%04x-%04x-%04x%08x', struct.unpack('>I4I2I2I2I2I4', id))
        local rate, key_rate = config[5] ~= '' and 1 or 0, config[6] ~= '' and 1 or 0
        -- A message that is refused is one that was lost.
        redis.pcall('PUBLISH', hands, cjson.encode({ no, tonumber(v[3] or 0), ARGV[4], rate, key_rate, lease_text, 0, { text }, { body }, {} }))
        return {}
      end
    end
  end
end
