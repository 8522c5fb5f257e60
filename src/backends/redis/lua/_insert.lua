-- Insert: all or none. Everything that could refuse is checked before anything is written; then records, then
-- dependencies, then the gates, in the order of the call. Refines memory/insert.ts.
-- A job is { id, content, x }: x is the JSON of insert-args.ts (queue own priority attempts delay runAt batch inside deps group
-- limitKey unique schedule replayOf).

function inserting.run_at(x)
  return math.max(x.runAt or now_ms, now_ms + (x.delay or 0))
end

-- An id that was minted is in its own queue or nowhere; one that somebody chose may be in any. On a Cluster the client has
-- looked into the others.
local function is_stored(job)
  if redis.call('HEXISTS', keys.queue(job.x.queue, 'jobs'), ids.bytes(job.id)) == 1 then
    return true
  end
  return job.x.own and records.queue_of(job.id, job.x.queue) ~= nil
end

-- Duplicates stand for their holders: two may stand for one, which counts once, and a policy that asks for its success
-- is kept.
local function resolve(deps, stands_for)
  local resolved, place = {}, {}
  for _, dep in ipairs(deps) do
    local parent = stands_for[dep[1]] or dep[1]
    local at = place[parent]
    if not at then
      resolved[#resolved + 1] = { parent, dep[2], dep[3] }
      place[parent] = #resolved
    elseif resolved[at][2] == 'continue' then
      resolved[at][2] = dep[2]
    end
  end
  return resolved
end

local function find_circle(jobs)
  local holders, stands_for, nodes = {}, {}, {}
  for _, job in ipairs(jobs) do
    local unique = job.x.unique
    if unique and not is_stored(job) then
      local key = job.x.queue .. '\n' .. unique.key
      local holder = holders[key] or uniques.holder(job.x.queue, unique.key)
      if holder then
        stands_for[job.id] = holder
      else
        holders[key] = job.id
      end
    end
  end
  for _, job in ipairs(jobs) do
    if not stands_for[job.id] and not is_stored(job) then
      nodes[#nodes + 1] = { id = job.id, deps = resolve(job.x.deps or {}, stands_for) }
    end
  end
  local circle = cycles.find(nodes)
  return circle and { 'DEPENDENCY_CYCLE', circle[1], circle }
end

local function batch_refusal(job)
  local batch = batches.find(job.x.batch)
  if not batch then
    return { 'BATCH_NOT_FOUND', job.id, job.x.batch }
  end
  if not batches.may_join(batch, job.x.inside) then
    return { 'BATCH_CLOSED', job.id, job.x.batch }
  end
end

local function find_refusal(jobs)
  local ids, has_deps = {}, false
  for _, job in ipairs(jobs) do
    ids[job.id] = true
  end
  for _, job in ipairs(jobs) do
    if job.x.batch and not is_cluster and not is_stored(job) then
      local refusal = batch_refusal(job)
      if refusal then
        return refusal
      end
    end
    for _, dep in ipairs(job.x.deps or {}) do
      has_deps = true
      local is_known = is_cluster or ids[dep[1]] or records.queue_of(dep[1], dep[3] or '')
      if not is_known and not is_stored(job) then
        return { 'DEPENDENCY_NOT_FOUND', job.id, dep[1] }
      end
    end
  end
  return has_deps and find_circle(jobs) or nil
end

-- A record that has no place yet.
local function write_record(job)
  local x = job.x
  local queue = queues.ensure(x.queue)
  local body = string.format('%.0f %s %s %s', now_ms, x.priority or queue.priority, x.attempts or queue.attempts, job.content)
  local bytes = ids.bytes(job.id)
  redis.call('HSET', keys.queue(x.queue, 'jobs'), bytes, body)
  order.append(x.queue, bytes)
  local record = records.keep({ queue = x.queue, id = job.id, bytes = bytes, body = body, f = {}, dirty = {} })
  for _, name in ipairs({ 'batch', 'group', 'limitKey', 'schedule', 'replayOf' }) do
    records.set(record, name, x[name])
  end
  local run_at = inserting.run_at(x)
  records.set(record, 'runAt', run_at ~= now_ms and run_at or nil)
  return record
end

local function write_one(job, written)
  local x, unique = job.x, job.x.unique
  if written[job.id] or is_stored(job) then
    return 'already', job.id
  end
  local holder = unique and uniques.holder(x.queue, unique.key)
  if holder then
    local replaced = unique.on ~= 'keep' and replacing.replace(holder, job, written[holder])
    return replaced and 'replaced' or 'duplicate', holder
  end
  local record = write_record(job)
  if unique then
    records.set(record, 'unique', unique.mode .. ' ' .. unique.key)
    uniques.hold(x.queue, unique.key, job.id, unique.mode, unique.window)
  end
  if x.batch then
    batches.join(record)
  end
  return 'inserted', job.id, record
end

local function add_dependencies(record, deps, stands_for)
  local resolved, texts = resolve(deps, stands_for), {}
  records.set(record, 'birth', queues.next_seq(record.queue))
  for _, dep in ipairs(resolved) do
    texts[#texts + 1] = dep[1] .. ' ' .. dep[2]
    local loaded = records.loaded[dep[1]]
    local queue = loaded and loaded.queue or records.queue_of(dep[1], is_cluster and record.queue or dep[3] or '')
    if is_cluster and queue ~= record.queue then
      parents.wait_for_far(record, dep[1], dep[2], dep[3], 'new')
    elseif queue then
      parents.depend_on(record, records.load(queue, dep[1]), dep[2])
    end
  end
  records.set(record, 'parents', #texts > 0 and table.concat(texts, ' ') or nil)
end

-- Answers the refusal, or nil and the results: outcome and id one after the other.
function inserting.insert(jobs)
  local refusal = find_refusal(jobs)
  if refusal then
    return refusal
  end
  local results, stands_for, written, fresh = {}, {}, {}, {}
  for _, job in ipairs(jobs) do
    local outcome, id, record = write_one(job, written)
    results[#results + 1] = outcome
    results[#results + 1] = id
    if id ~= job.id then
      stands_for[job.id] = id
    end
    if record then
      written[job.id] = true
      fresh[#fresh + 1] = { record = record, deps = job.x.deps }
    end
  end
  for _, one in ipairs(fresh) do
    if one.deps then
      add_dependencies(one.record, one.deps, stands_for)
    end
  end
  for _, one in ipairs(fresh) do
    gates.admit(one.record)
  end
  return nil, results
end
