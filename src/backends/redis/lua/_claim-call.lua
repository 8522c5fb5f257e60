-- jobs.claim itself, in cycle.lua.
local PARKED_MS = '@parkedMs'

-- Why this worker may not claim; else notes the number of the claim. On a Cluster the client has asked whether it is
-- alive, and each queue keeps the numbers of its own claims.
local function refusal(worker, claim_no, queue)
  if is_cluster then
    local claims = keys.queue(queue, 'claims')
    if claim_no <= tonumber(redis.call('HGET', claims, worker) or 0) then
      return 'superseded'
    end
    redis.call('HSET', claims, worker, claim_no)
    return '', 0
  end
  local key = keys.worker(worker)
  local v = redis.call('HMGET', key, 'state', 'claimNo', 'answered')
  if v[1] ~= 'alive' then
    return 'worker-dead'
  end
  if claim_no <= tonumber(v[2] or 0) then
    return 'superseded'
  end
  redis.call('HSET', key, 'claimNo', claim_no)
  return '', tonumber(v[3] or 0)
end

-- values: worker, claim number, limit, lease in ms (empty: none), 1 if it stands (_hand-over.lua), queues
function claiming.claim()
  local worker, claim_no, limit, lease_ms = args.next(), args.number(), args.number(), args.number()
  local stands, names = args.next() == '1' and not lease_ms and not is_cluster, args.list()
  local refused, answered = refusal(worker, claim_no, names[1])
  local claimed, paused = {}, {}
  if refused ~= '' then
    return { refused, paused, claimed }
  end
  local left = limit
  for _, name in ipairs(names) do
    local queue = queues.find(name)
    if queue and queue.paused then
      paused[#paused + 1] = name
    elseif queue and left > 0 then
      local reply, n = claiming.take(queue, worker, left, lease_ms)
      if reply then
        claimed[#claimed + 1] = reply
        left = left - n
      end
    end
  end
  if left > 0 then
    -- Who got something is busy: what is handed over might wait behind it.
    local parked = stands and #claimed == 0 and worker .. ' ' .. claim_no .. ' ' .. left or '1'
    for _, name in ipairs(names) do
      redis.call('SET', keys.queue(name, 'parked'), parked, 'PX', PARKED_MS)
    end
  end
  return { refused, paused, claimed, answered }
end
