-- Batches: counters that equal a recount, and callbacks once. Refines core/batch.ts, memory/places.ts (finishBatch) and
-- memory/settle.ts (completeBatch). Hash `{batch:<id>}`: name meta callbacks (JSON for TypeScript) created finished sealed
-- cancelled(asked) total pending completed failed cancelled kept, and per callback `<name>:id`, `:content`, `:extras`.
--@include _keys-apart

local function live_key(id)
  return keys.batch(id) .. ':live'
end

local function counted_as(status)
  return FINAL[status] and status or 'pending'
end

function batches.find(id)
  local v = redis.call('HMGET', keys.batch(id), 'created', 'sealed', 'asked', 'finished', 'pending', 'completed', 'total')
  return v[1] and {
    id = id,
    sealed = v[2],
    cancelled = v[3],
    finished = v[4],
    pending = tonumber(v[5] or 0),
    completed = tonumber(v[6] or 0),
    total = tonumber(v[7] or 0),
  } or nil
end

-- core/batch.ts mayJoin.
function batches.may_join(batch, inside)
  if batch.cancelled or batch.finished then
    return false
  end
  return not batch.sealed or (inside and batch.pending > 0)
end

function batches.join(record)
  if is_cluster then
    return -- the client has announced it
  end
  local key = keys.batch(record.f.batch)
  redis.call('HINCRBY', key, 'total', 1)
  redis.call('HINCRBY', key, 'pending', 1)
  redis.call('HINCRBY', key, 'kept', 1)
  redis.call('SADD', live_key(record.f.batch), record.queue .. ' ' .. record.id)
end

-- A finished batch without jobs goes when its time is over: prune looks there.
function batches.check_over(id)
  local v = redis.call('HMGET', keys.batch(id), 'finished', 'kept')
  if v[1] and tonumber(v[2] or 0) <= 0 then
    redis.call('ZADD', keys.of_system('batches:over'), v[1], id)
  end
end

-- A job was pruned: it still counts.
function batches.forget(record, id)
  if is_cluster then
    return outbox.batch(record, id, 'pruned')
  end
  redis.call('HINCRBY', keys.batch(id), 'kept', -1)
  batches.check_over(id)
end

local function is_there(record)
  return redis.call('EXISTS', keys.batch(record.f.batch)) == 1
end

function batches.move(record, from, to)
  if is_cluster then
    return outbox.batch(record, record.f.batch, counted_as(to))
  end
  if not is_there(record) then
    return
  end
  local key = keys.batch(record.f.batch)
  redis.call('HINCRBY', key, counted_as(from), -1)
  redis.call('HINCRBY', key, counted_as(to), 1)
  redis.call(FINAL[to] and 'SREM' or 'SADD', live_key(record.f.batch), record.queue .. ' ' .. record.id)
end

-- A job that is deleted no longer counts.
function batches.quit(record)
  if is_cluster then
    return outbox.batch(record, record.f.batch, 'gone')
  end
  if not is_there(record) then
    return
  end
  local key = keys.batch(record.f.batch)
  redis.call('HINCRBY', key, counted_as(records.status(record)), -1)
  redis.call('HINCRBY', key, 'total', -1)
  redis.call('HINCRBY', key, 'kept', -1)
  redis.call('SREM', live_key(record.f.batch), record.queue .. ' ' .. record.id)
  batches.check_over(record.f.batch)
end

local function callback(id, name)
  local v = redis.call('HMGET', keys.batch(id), name .. ':id', name .. ':content', name .. ':extras')
  return v[1] and { id = v[1], content = v[2], x = cjson.decode(v[3]) } or nil
end

-- Sealed and nothing pending: finished, once, with the callbacks that are due.
function batches.complete(id)
  if is_cluster then
    return -- whoever delivers the count sees to it
  end
  local batch = batches.find(id)
  if not batch or batch.finished or not batch.sealed or batch.pending > 0 then
    return
  end
  redis.call('HSET', keys.batch(id), 'finished', now_ms)
  redis.call('SREM', keys.of_system('batches:cancelled'), id)
  batches.check_over(id)
  rings.ring_end(id)
  local is_success = batch.completed == batch.total and not batch.cancelled
  local jobs = {}
  for _, name in ipairs({ 'complete', is_success and 'success' or 'failure' }) do
    jobs[#jobs + 1] = callback(id, name)
  end
  if #jobs > 0 then
    inserting.insert(jobs)
  end
end
