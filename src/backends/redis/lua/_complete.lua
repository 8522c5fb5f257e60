-- The quick way for completions: two commands per job, the rest once per call. For jobs nothing hangs on; all others
-- take the general way. Refines core/apply.ts for the edge `complete` alone.
--   values: queue, n, then n times: id, lease, milliseconds of the run, result (empty: none)
local completing = {}

local function complete_general(template, id, queue, lease, ran, result)
  local change = cjson.decode(template)
  change.id, change.queue, change.lease, change.ran = id, queue, lease, ran
  change.result = result ~= '' and result or nil
  return settling.settle(change)
end

-- Removes from the sets of the workers that ran them.
local function let_go(queue, by_worker)
  for worker, ids in pairs(by_worker) do
    calls.each('SREM', keys.queue(queue, 'held:' .. worker), ids)
  end
end

-- Answers positions (from 1) and verdicts of those that were not simply applied.
function completing.section(template, verdicts, position)
  local queue, n = args.next(), args.number()
  local done, by_worker = {}, {}
  for _ = 1, n do
    local id, lease, ran, result = args.next(), args.next(), args.number(), args.next()
    position = position + 1
    local key = keys.job(queue, id)
    local now = redis.call('HMGET', key, 'status', 'lease', 'hooks', 'attempt', 'worker')
    if now[1] == 'running' and now[2] == lease and not now[3] then
      local attempt = tonumber(now[4] or 0) + 1
      local edge, started = 'complete ' .. lease, now_ms - ran
      if result == '' then
        redis.call('HSET', key, 'status', 'completed', 'finished', now_ms, 'attempt', attempt, 'edge', edge, 'started', started)
      else
        redis.call('HSET', key, 'status', 'completed', 'finished', now_ms, 'attempt', attempt, 'edge', edge, 'started', started,
          'result', result)
      end
      done[#done + 1] = id
      local held = by_worker[now[5]]
      if held then
        held[#held + 1] = id
      else
        by_worker[now[5]] = { id }
      end
      rings.ring_end(id)
    else
      local verdict = complete_general(template, id, queue, tonumber(lease), ran, result)
      if verdict ~= 'applied' then
        verdicts[#verdicts + 1] = position
        verdicts[#verdicts + 1] = verdict
      end
    end
  end
  if #done > 0 then
    let_go(queue, by_worker)
    calls.each('RPUSH', keys.queue(queue, 'ended:completed'), done)
    queues.count(queue, 'running', -#done)
    queues.count(queue, 'completed', #done)
  end
  return position
end
