-- The quick way of insert: a handful of commands per call, whatever the number of jobs. A queue with limits sends its
-- jobs through the gates after all.
local plain = {}

local function resolve(header, queue)
  local priority, attempts = string.match(header, '^(%S+) (%S+)$')
  priority = priority == '-' and queue.priority or priority
  attempts = attempts == '-' and queue.attempts or attempts
  return {
    text = string.format('%.0f', now_ms) .. ' ' .. priority .. ' ' .. attempts .. ' ',
    lane = queues.lane(queue, tonumber(priority)),
    priority = priority,
    attempts = attempts,
  }
end

local function insert_gated(queue, jobs, known, position)
  local asked = {}
  for i, job in ipairs(jobs) do
    asked[i] = {
      id = job.id,
      content = job.content,
      x = { queue = queue.name, priority = job.header.priority, attempts = job.header.attempts },
    }
  end
  local _, results = library().inserting.insert(asked)
  for i = 1, #jobs do
    if results[2 * i - 1] == 'already' then
      known[#known + 1] = position + i
    end
  end
end

local function insert_ready(queue, jobs, bytes, known, position)
  local asked, pairs_in, all, lanes = {}, {}, {}, {}
  for i, job in ipairs(jobs) do
    asked[i] = job.id
  end
  local found = calls.fields(keys.queue(queue.name, 'jobs'), asked)
  for i, job in ipairs(jobs) do
    if found[i] then
      known[#known + 1] = position + i
    else
      pairs_in[#pairs_in + 1] = job.id
      pairs_in[#pairs_in + 1] = job.header.text .. job.content
      local entry = string.sub(bytes, i * 16 - 15, i * 16)
      all[#all + 1] = entry
      local lane = lanes[job.header.lane]
      if not lane then
        lane = {}
        lanes[job.header.lane] = lane
      end
      lane[#lane + 1] = entry
    end
  end
  if #all == 0 then
    return
  end
  calls.each('HSET', keys.queue(queue.name, 'jobs'), pairs_in)
  calls.each('RPUSH', keys.queue(queue.name, 'all'), all)
  for lane, entries in pairs(lanes) do
    calls.each('RPUSH', keys.queue(queue.name, lane), entries)
  end
  queues.count(queue.name, 'queued', #all)
  rings.ring_ready(queue.name)
end

function plain.section(known, position)
  local name, n, bytes = args.next(), args.number(), args.next()
  local queue = queues.ensure(name)
  local jobs, headers = {}, {}
  for i = 1, n do
    local id, header, content = args.next(), args.next(), args.next()
    headers[header] = headers[header] or resolve(header, queue)
    jobs[i] = { id = id, header = headers[header], content = content }
  end
  if queue.gated then
    insert_gated(queue, jobs, known, position)
  else
    insert_ready(queue, jobs, bytes, known, position)
  end
  return position + n
end
