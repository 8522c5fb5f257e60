-- Who holds a unique key. Refines memory/unique.ts and core/unique.ts (holdsKey). One text per key: "id mode until".
-- A key held for a time ends by `until`; that its text expires a minute later only cleans up.
local SPARE_MS = 60000

local function key_of(queue, key)
  return keys.queue(queue, 'unique:' .. key)
end

-- The id of the holder, or nil.
function uniques.holder(queue, key)
  local held = redis.call('GET', key_of(queue, key))
  if not held then
    return nil
  end
  local id, mode, ends = string.match(held, '^(%S+) (%S+) (%S+)$')
  if mode == 'for-a-time' and tonumber(ends) <= now_ms then
    return nil
  end
  return id
end

function uniques.hold(queue, key, id, mode, window_ms)
  if mode == 'for-a-time' then
    local held = string.format('%s %s %.0f', id, mode, now_ms + window_ms)
    redis.call('SET', key_of(queue, key), held, 'PX', string.format('%.0f', window_ms + SPARE_MS))
  else
    redis.call('SET', key_of(queue, key), id .. ' ' .. mode .. ' 0')
  end
end

-- Gives a key back, if this job holds it.
function uniques.give_back(queue, id, unique)
  local mode, key = string.match(unique, '^(%S+) (.*)$')
  if mode == 'for-a-time' then
    return
  end
  local held = redis.call('GET', key_of(queue, key))
  if held and string.sub(held, 1, #id + 1) == id .. ' ' then
    redis.call('DEL', key_of(queue, key))
  end
end

function uniques.free(record)
  if record.f.unique then
    uniques.give_back(record.queue, record.id, record.f.unique)
  end
end

-- A replayed job takes a key until-finished again.
function uniques.hold_again(record)
  local mode, key = string.match(record.f.unique or '', '^(%S+) (.*)$')
  if mode == 'until-finished' then
    uniques.hold(record.queue, key, record.id, mode, 0)
  end
end

-- Could a replayed job have its key back? A key held for a time does not stand in the way of its own job.
function uniques.may_hold_again(record)
  local _, key = string.match(record.f.unique or '', '^(%S+) (.*)$')
  local holder = key and uniques.holder(record.queue, key)
  if not holder or holder == record.id then
    return true
  end
  local other = records.load(record.queue, holder)
  return not other or FINAL[records.status(other)] or false
end
