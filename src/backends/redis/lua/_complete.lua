-- The quick way for completions: one command per job, the rest once per call. For jobs nothing hangs on and that were
-- not tried before; all others take the general way. Refines core/apply.ts for the edge `complete` alone.
--   values: queue, n, then of all jobs in one text each: ids as 16 bytes, ids as 36 characters, leases (16 digits) with the
--           milliseconds of their runs (12 digits); number of results, then position and result of each
local completing = {}
local RUN_CHARS = 28

local function complete_any(template, queue, job, result)
  local change = cjson.decode(template)
  change.id, change.queue, change.lease, change.ran = job.id, queue, tonumber(job.lease), tonumber(job.ran)
  change.result = result
  return library().settling.settle(change)
end

-- By what `running` says: lease and worker, or false for a run that something hangs on. As a rule all jobs of a claim have
-- the same. For one section: runs of another queue may look alike.
local function plain_runs()
  return setmetatable({}, {
    __index = function(known, run)
      local lease, worker = string.match(run, '^(%S+) (%S+) %S+$')
      known[run] = lease and { lease = lease, worker = worker, ends = {} } or false
      return known[run]
    end,
  })
end

local function read_section()
  local section = { queue = args.next(), n = args.number() }
  local bytes = args.next()
  section.texts, section.runs, section.asked, section.results = args.next(), args.next(), {}, {}
  for i = 1, section.n do
    section.asked[i] = string.sub(bytes, i * 16 - 15, i * 16)
  end
  for _ = 1, args.number() do
    section.results[args.number()] = args.next()
  end
  return section
end

local function job_of(section, i)
  local at = (i - 1) * RUN_CHARS
  return {
    id = string.sub(section.texts, i * 36 - 35, i * 36),
    lease = string.sub(section.runs, at + 1, at + 16),
    ran = string.sub(section.runs, at + 17, at + RUN_CHARS),
  }
end

local function write_end(key, one, result)
  local run, started, finished = one.run, one.started, one.finished
  if result then
    redis.call('HSET', key, 'status', 'completed', 'worker', run.worker, 'lease', run.lease, 'started', started,
      'finished', finished, 'attempt', '1', 'result', result)
  else
    redis.call('HSET', key, 'status', 'completed', 'worker', run.worker, 'lease', run.lease, 'started', started,
      'finished', finished, 'attempt', '1')
  end
end

-- The end of a run of so many milliseconds: jobs of one claim that took the same time end alike.
local function end_of(run, ran, ends)
  local one = run.ends[ran]
  if not one then
    one = { run = run, started = string.format('%.0f', now_ms - ran), finished = string.format('%.0f', now_ms), keys = {} }
    run.ends[ran] = one
    ends[#ends + 1] = one
  end
  return one
end

-- Hashes that are alike are copied: to copy one takes 2 µs, to write six fields 5.
local function write_alike(queue, ends)
  local pattern, is_used = keys.queue(queue, 'ending'), false
  for _, one in ipairs(ends) do
    if #one.keys == 1 then
      write_end(one.keys[1], one)
    elseif #one.keys > 1 then
      write_end(pattern, one)
      is_used = true
      for i = 1, #one.keys do
        redis.call('COPY', pattern, one.keys[i], 'REPLACE')
      end
    end
  end
  if is_used then
    redis.call('DEL', pattern)
  end
end

-- Writes the hashes of those that the quick way is for. Answers their ids as bytes and as texts, and the positions of the others.
local function write_ends(section)
  local texts, runs, results, asked = section.texts, section.runs, section.results, section.asked
  local running = calls.fields(keys.queue(section.queue, 'running'), asked)
  local job_prefix, is_watched = keys.queue(section.queue, 'job:'), rings.is_watched()
  local done, ended, others, ends, known = {}, {}, {}, {}, plain_runs()
  for i = 1, section.n do
    local run, at = running[i] and known[running[i]], (i - 1) * RUN_CHARS
    if run and string.find(runs, run.lease, at + 1, true) == at + 1 then
      local id = string.sub(texts, i * 36 - 35, i * 36)
      local one = end_of(run, string.sub(runs, at + 17, at + RUN_CHARS), ends)
      if results[i] then
        write_end(job_prefix .. id, one, results[i])
      else
        one.keys[#one.keys + 1] = job_prefix .. id
      end
      done[#done + 1] = asked[i]
      ended[#ended + 1] = id
      if is_watched then
        rings.ring_end(id)
      end
    else
      others[#others + 1] = i
    end
  end
  write_alike(section.queue, ends)
  return done, ended, others
end

-- Adds positions (from 1) and verdicts of those that were not simply applied.
function completing.section(template, verdicts, position)
  local section = read_section()
  local queue = section.queue
  local done, ended, others = write_ends(section)
  if #done > 0 then
    calls.each('HDEL', keys.queue(queue, 'running'), done)
    calls.each('RPUSH', keys.queue(queue, 'ended:completed'), ended)
    queues.count(queue, 'running', -#done)
    queues.count(queue, 'completed', #done)
  end
  for _, i in ipairs(others) do
    local verdict = complete_any(template, queue, job_of(section, i), section.results[i])
    if verdict ~= 'applied' then
      verdicts[#verdicts + 1] = position + i
      verdicts[#verdicts + 1] = verdict
    end
  end
  return position + section.n
end
