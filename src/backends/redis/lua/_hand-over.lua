-- What has become ready goes to the worker whose claim stands there, in the same atom. Refines memory/hand-over.ts.
--   `parked`: "worker claimNo limit" of the last claim that stands, or 1: somebody waits for the bell
local HAND_OVER_MAX = '@handOverMax'

-- Its worker is alive, has not claimed or looked since, and was not answered yet; and somebody hears it there.
local function who_stands(parked)
  local worker, claim_no, limit = string.match(parked, '^(%S+) (%d+) (%d+)$')
  if not worker then
    return nil
  end
  local v = redis.call('HMGET', keys.worker(worker), 'state', 'claimNo', 'answered', 'looked')
  local no = tonumber(claim_no)
  if v[1] ~= 'alive' or tonumber(v[2]) ~= no or tonumber(v[3] or 0) >= no or tonumber(v[4] or 0) >= no then
    return nil
  end
  local channel = keys.workers('hands:' .. worker)
  local heard = redis.pcall('PUBSUB', 'NUMSUB', channel) -- a user who may not ask is rung
  if heard.err or heard[2] == 0 then
    return nil
  end
  return { worker = worker, claim_no = claim_no, limit = tonumber(limit), before = v[3] or '0', channel = channel }
end

-- As text: JSON has no bytes, and rounds a lease.
local function tell(standing, claimed)
  local name, rate, key_rate, first, step, entries, bodies, histories = unpack(claimed)
  local texts = {}
  for i = 1, #bodies do
    texts[i] = ids.text(string.sub(entries, i * 16 - 15, i * 16))
  end
  -- A message that is refused is one that was lost; an error here would stop what follows the writes.
  redis.pcall('PUBLISH', standing.channel, cjson.encode({
    tonumber(standing.claim_no), tonumber(standing.before), name, rate, key_rate, string.format('%.0f', first), step, texts, bodies, histories,
  }))
end

-- Answers whether something may be left for others.
local function hand_over(name, parked)
  local queue, standing = queues.find(name), who_stands(parked)
  if not standing or queue.paused then
    return true
  end
  local want = math.min(standing.limit, tonumber(HAND_OVER_MAX))
  local claimed, n = claiming.take(queue, standing.worker, want)
  if not claimed then
    return true
  end
  redis.call('HSET', keys.worker(standing.worker), 'answered', standing.claim_no)
  redis.call('SET', keys.queue(name, 'parked'), '1', 'KEEPTTL') -- others may wait there as well
  tell(standing, claimed)
  return n == want and redis.call('EXISTS', keys.queue(name, 'high'), keys.queue(name, 'normal'), keys.queue(name, 'low')) > 0
end
