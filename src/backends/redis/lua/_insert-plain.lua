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

-- `section`: queue, n, ids as bytes, headers by their text, the header that all have or nil, where their values begin.
-- Answers header and content of a job.
local function job_at(section, i)
  if section.header then
    return section.header, ARGV[section.from + i]
  end
  local at = section.from + 2 * i
  local text = ARGV[at - 1]
  section.headers[text] = section.headers[text] or resolve(text, section.queue)
  return section.headers[text], ARGV[at]
end

local function insert_gated(section, known, position)
  local asked, name = {}, section.queue.name
  for i = 1, section.n do
    local header, content = job_at(section, i)
    local x = { queue = name, priority = header.priority, attempts = header.attempts }
    asked[i] = { id = ids.text(section.bytes[i]), content = content, x = x }
  end
  local _, results = library().inserting.insert(asked)
  for i = 1, section.n do
    if results[2 * i - 1] == 'already' then
      known[#known + 1] = position + i
    end
  end
end

local function insert_ready(section, known, position)
  local name, bytes, fields, all, lanes = section.queue.name, section.bytes, {}, {}, {}
  local found = calls.fields(keys.queue(name, 'jobs'), bytes)
  for i = 1, section.n do
    if found[i] then
      known[#known + 1] = position + i
    else
      local header, content = job_at(section, i)
      fields[#fields + 1] = bytes[i]
      fields[#fields + 1] = header.text .. content
      all[#all + 1] = bytes[i]
      local lane = lanes[header.lane] or {}
      lanes[header.lane] = lane
      lane[#lane + 1] = bytes[i]
    end
  end
  if #all == 0 then
    return
  end
  calls.each('HSET', keys.queue(name, 'jobs'), fields)
  calls.each('RPUSH', keys.queue(name, 'all'), all)
  for lane, entries in pairs(lanes) do
    calls.each('RPUSH', keys.queue(name, lane), entries)
  end
  queues.count(name, 'queued', #all)
  rings.ring_ready(name)
end

function plain.section(known, position)
  local queue, n, bytes, header = queues.ensure(args.next()), args.number(), args.next(), args.next()
  local section = { queue = queue, n = n, bytes = {}, headers = {}, from = args.at }
  section.header = header ~= '' and resolve(header, queue) or nil
  for i = 1, n do
    section.bytes[i] = string.sub(bytes, i * 16 - 15, i * 16)
  end
  args.at = args.at + (section.header and n or 2 * n)
  if queue.gated then
    insert_gated(section, known, position)
  else
    insert_ready(section, known, position)
  end
  return position + n
end
