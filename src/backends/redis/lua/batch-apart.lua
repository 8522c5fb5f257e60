-- Cluster only: a batch on its own node. It knows each of its jobs ("number counted", and of one that was announced
-- "0 pending when"), so that a message counts once and an older one undoes nothing. Refines core/batch.ts; callbacks are
-- inserted by the client, which then says `fired`.
--   values: what, id, …    reply: 'missing', 'closed', 'no', 'ok', or 'finished': callbacks are due
--     join: 1 if from inside, then members ("queue id")     note: member, number, counted
--     seal, cancel, discard, fired                          drop: ms, then members that were announced as long ago
-- Joining adds jobs, so it is refused at the limit of memory as they are.
if ARGV[2] ~= 'join' then
--@include _go-on
end
--@include _keys
--@include _keys-apart
--@include _time
local what, id = ARGV[2], ARGV[3]
local key = keys.batch(id)
local live_key, jobs_key = key .. ':live', key .. ':jobs'
local FINAL = { completed = true, failed = true, cancelled = true }

local v = redis.call('HMGET', key, 'created', 'sealed', 'asked', 'finished', 'pending', 'total')
if not v[1] then
  return 'missing'
end
local sealed, asked, finished = v[2], v[3], v[4]

-- From what a member counted as to what it counts as now; nil: it is not there.
local function count(member, from, to)
  if from == to then
    return
  end
  if from then
    redis.call('HINCRBY', key, from, -1)
  else
    redis.call('HINCRBY', key, 'total', 1)
    redis.call('HINCRBY', key, 'kept', 1)
  end
  if to then
    redis.call('HINCRBY', key, to, 1)
  else
    redis.call('HINCRBY', key, 'total', -1)
    redis.call('HINCRBY', key, 'kept', -1)
  end
  redis.call((to and not FINAL[to]) and 'SADD' or 'SREM', live_key, member)
end

local function join()
  local inside, pending = ARGV[4] == '1', tonumber(v[5] or 0)
  if asked or finished or (sealed and not (inside and pending > 0)) then
    return 'closed'
  end
  local announced = string.format('0 pending %.0f', now_ms)
  for i = 5, #ARGV do
    local known = redis.call('HGET', jobs_key, ARGV[i])
    if not known then
      count(ARGV[i], nil, 'pending')
    end
    -- A call that is repeated has as long as the first.
    if not known or string.find(known, '^0 ') then
      redis.call('HSET', jobs_key, ARGV[i], announced)
    end
  end
  return 'ok'
end

local function note(member, number, counted)
  local known = redis.call('HGET', jobs_key, member)
  local last, before = string.match(known or '-1 -', '^(%S+) (%S+)')
  if not known or tonumber(number) <= tonumber(last) then
    return
  end
  if counted == 'pruned' then
    redis.call('HINCRBY', key, 'kept', -1)
    redis.call('HDEL', jobs_key, member)
  elseif counted == 'gone' then
    count(member, before, nil)
    redis.call('HDEL', jobs_key, member)
  else
    count(member, before, counted)
    redis.call('HSET', jobs_key, member, number .. ' ' .. counted)
  end
end

-- Requests that made no job, and ghosts of a call whose client died between joining and inserting.
local function drop(older_ms)
  for i = 5, #ARGV do
    local since = string.match(redis.call('HGET', jobs_key, ARGV[i]) or '', '^0 pending (%d+)$')
    if since and tonumber(since) <= now_ms - older_ms then
      count(ARGV[i], 'pending', nil)
      redis.call('HDEL', jobs_key, ARGV[i])
    end
  end
end

if what == 'join' then
  return join()
elseif what == 'note' then
  note(ARGV[4], ARGV[5], ARGV[6])
elseif what == 'drop' then
  drop(tonumber(ARGV[4]))
elseif what == 'fired' then
  redis.call('HDEL', key, 'firing')
  return 'ok'
elseif what == 'discard' then
  if tonumber(v[6] or 0) > 0 then
    return 'no'
  end
  redis.call('DEL', key, live_key, jobs_key)
  return 'ok'
elseif not finished then
  redis.call('HSET', key, 'sealed', '1')
  sealed = '1'
  if what == 'cancel' then
    redis.call('HSET', key, 'asked', '1')
  end
end
if sealed and not finished and tonumber(redis.call('HGET', key, 'pending') or 0) <= 0 then
  redis.call('HSET', key, 'finished', string.format('%.0f', now_ms), 'firing', '1')
end
return redis.call('HEXISTS', key, 'firing') == 1 and 'finished' or 'ok'
