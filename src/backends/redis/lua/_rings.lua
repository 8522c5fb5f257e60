-- Hints: gathered while a script works, sent at its end. Refines store/wakeups.ts; listeners are wakeups.ts.
--   bell: topics joined by newlines, one message per call. `ready:<q>` only if somebody was seen idle there (`parked`).
--   ends: ids of what has ended, only while somebody watches.
local rings = { ready = {}, topics = {}, known = {}, ends = {} }

function rings.ring_ready(queue)
  rings.ready[queue] = true
end

function rings.ring(topic)
  if not rings.known[topic] then
    rings.known[topic] = true
    rings.topics[#rings.topics + 1] = topic
  end
end

function rings.ring_end(id)
  rings.ends[#rings.ends + 1] = id
end

-- Does anybody want to hear of ends? Asked once per script; on a Cluster it is said elsewhere.
function rings.is_watched()
  if rings.watched == nil then
    rings.watched = is_cluster or redis.call('EXISTS', keys.of_system('watchers')) == 1
  end
  return rings.watched
end

-- Queues where a claim stands and something has become ready, with what `parked` says of it (_hand-over.lua); nil: none.
-- Where nobody waits at all nobody is rung for.
function rings.standing()
  local standing
  for queue in pairs(is_cluster and {} or rings.ready) do
    local parked = redis.call('GET', keys.queue(queue, 'parked'))
    if not parked then
      rings.ready[queue] = nil
    elseif parked ~= '1' then
      standing = standing or {}
      standing[queue] = parked
    end
  end
  return standing
end

function rings.flush()
  for queue in pairs(rings.ready) do
    if redis.call('DEL', keys.queue(queue, 'parked')) == 1 then
      rings.ring('ready:' .. queue)
    end
  end
  if #rings.topics > 0 then
    redis.call('PUBLISH', keys.of_system('bell'), table.concat(rings.topics, '\n'))
  end
  if #rings.ends > 0 and rings.is_watched() then
    redis.call('PUBLISH', keys.of_system('ends'), table.concat(rings.ends, '\n'))
  end
end
