-- The quick way for completions: one command per job, the rest once per call. For jobs nothing hangs on and that were
-- not tried before; all others take the general way. Refines core/apply.ts for the edge `complete` alone.
--   values: queue, n, then n times: id, lease, milliseconds of the run, result (empty: none)
local completing = {}

local function complete_any(template, queue, at)
  local change = cjson.decode(template)
  change.id, change.queue, change.lease, change.ran = ARGV[at], queue, tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  change.result = ARGV[at + 3] ~= '' and ARGV[at + 3] or nil
  return library().settling.settle(change)
end

-- Adds positions (from 1) and verdicts of those that were not simply applied.
function completing.section(template, verdicts, position)
  local queue, n = args.next(), args.number()
  local from, job_prefix = args.at + 1, keys.queue(queue, 'job:')
  args.at = args.at + 4 * n
  local asked, done, others = {}, {}, {}
  for i = 1, n do
    asked[i] = ARGV[from + 4 * i - 4]
  end
  local running = calls.fields(keys.queue(queue, 'running'), asked)
  local now = string.format('%.0f', now_ms)
  for i = 1, n do
    local at, run = from + 4 * i - 4, running[i]
    local id, lease = asked[i], ARGV[at + 1]
    if run and string.sub(run, 1, #lease + 1) == lease .. ' ' and string.sub(run, -2) ~= ' h' then
      local started, result = string.format('%.0f', now_ms - ARGV[at + 2]), ARGV[at + 3]
      if result == '' then
        redis.call('HSET', job_prefix .. id, 'status', 'completed', 'finished', now, 'attempt', '1', 'started', started)
      else
        redis.call('HSET', job_prefix .. id, 'status', 'completed', 'finished', now, 'attempt', '1', 'started', started,
          'result', result)
      end
      done[#done + 1] = id
      rings.ring_end(id)
    else
      others[#others + 1] = i
    end
  end
  if #done > 0 then
    calls.each('HDEL', keys.queue(queue, 'running'), done)
    calls.each('RPUSH', keys.queue(queue, 'ended:completed'), done)
    queues.count(queue, 'running', -#done)
    queues.count(queue, 'completed', #done)
  end
  for _, i in ipairs(others) do
    local verdict = complete_any(template, queue, from + 4 * i - 4)
    if verdict ~= 'applied' then
      verdicts[#verdicts + 1] = position + i
      verdicts[#verdicts + 1] = verdict
    end
  end
  return position + n
end
