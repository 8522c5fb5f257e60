-- Dependencies. Refines memory/insert.ts (dependOn, orphan), memory/settle.ts (tellChildren, reviveGates) and
-- core/gate.ts (parentEnded). `kids:<parent>` lists who waits: "queue id policy birth". A child that was deleted may have
-- a namesake, a late copy of its insert: that one has another birth.

-- The child stays blocked; maintenance settles it by its policy. Counted for good: the gate stays shut.
local function orphan(child, parent_id, ended, policy)
  records.set(child, 'pending', records.number(child, 'pending') + 1)
  if not child.f.orphan then
    records.set(child, 'orphan', parent_id .. ' ' .. ended .. ' ' .. policy)
  end
  redis.call('SADD', keys.queue(child.queue, 'orphans'), child.id)
end

local function is_met(ended, policy)
  return ended == 'completed' or policy == 'continue'
end

local function entry_of(child, policy)
  return child.queue .. ' ' .. child.id .. ' ' .. policy .. ' ' .. (child.f.birth or '0')
end

function parents.depend_on(child, parent, policy)
  local status = records.status(parent)
  if not FINAL[status] then
    records.set(child, 'pending', records.number(child, 'pending') + 1)
    redis.call('RPUSH', keys.queue(parent.queue, 'kids:' .. parent.id), entry_of(child, policy))
    records.set(parent, 'kids', '1')
  elseif not is_met(status, policy) then
    orphan(child, parent.id, status, policy)
  end
end

-- On a Cluster: the parent is elsewhere and will be asked to tell. `how` again: only if it is live now.
function parents.wait_for_far(child, parent_id, policy, guess, how)
  records.set(child, 'pending', records.number(child, 'pending') + 1)
  outbox.link(child, parent_id, policy, guess, how)
end

local function tell(child, parent_id, ended, policy)
  records.set(child, 'pending', records.number(child, 'pending') - 1)
  if not is_met(ended, policy) then
    orphan(child, parent_id, ended, policy)
  elseif records.number(child, 'pending') == 0 then
    records.set(child, 'pending', nil)
    if records.status(child) == 'blocked' and child.f.waits == 'parents' then
      gates.readmit(child)
    end
  end
end

-- The end of a parent, or its deletion, which counts as cancelled.
function parents.tell_children(parent)
  if not parent.f.kids then
    return
  end
  local key = keys.queue(parent.queue, 'kids:' .. parent.id)
  local kids = redis.call('LRANGE', key, 0, -1)
  redis.call('DEL', key)
  records.set(parent, 'kids', nil)
  local status = records.status(parent)
  local ended = FINAL[status] and status or 'cancelled'
  for _, entry in ipairs(kids) do
    local queue, id, policy, birth = string.match(entry, '^(%S+) (%S+) (%S+) (%S+)$')
    local is_far = is_cluster and queue ~= parent.queue
    local child = not is_far and records.load(queue, id)
    if is_far then
      outbox.tell(parent.queue, queue, id, birth, parent.id, ended, policy)
    elseif child and (child.f.birth or '0') == birth and not FINAL[records.status(child)] then
      tell(child, parent.id, ended, policy)
    end
  end
end

-- A replayed job waits only for parents that are live now.
function parents.revive(record)
  records.set(record, 'orphan', nil)
  records.set(record, 'pending', nil)
  records.set(record, 'told', nil)
  for id, policy in string.gmatch(record.f.parents or '', '(%S+) (%S+)') do
    local queue = records.queue_of(id, record.queue)
    local parent = queue and records.load(queue, id)
    if is_cluster and not queue then
      parents.wait_for_far(record, id, policy, '', 'again')
    end
    if parent and not FINAL[records.status(parent)] then
      -- It may still be in the list of this parent, from its earlier life.
      redis.call('LREM', keys.queue(queue, 'kids:' .. id), 0, entry_of(record, policy))
      parents.depend_on(record, parent, policy)
    end
  end
end

-- A message from a parent elsewhere: counts once per parent and life, however often it comes.
function parents.hear(queue, id, birth, parent_id, ended, policy)
  local child = records.load(queue, id)
  if not child or (child.f.birth or '0') ~= birth or FINAL[records.status(child)] then
    return
  end
  local told = child.f.told or ''
  if not string.find(told, parent_id, 1, true) then
    records.set(child, 'told', told .. parent_id .. ' ')
    tell(child, parent_id, ended, policy)
  end
end
