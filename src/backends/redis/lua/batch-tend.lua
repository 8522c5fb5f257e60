-- Cluster only: what there is to do about a batch. One that is over goes: it has finished and none of its jobs is kept.
--   values: id, how long a finished one is kept, how long an announced job may take to come, how many of these to name
--   reply:  'missing' (also: went now), 'firing', 'finished', 'cancelled' (and not finished) or 'open', then the members of
--           an unfinished one that were announced as long ago and of which nothing was heard since
--@include _go-on
--@include _keys
--@include _keys-apart
--@include _time
local id, kept_ms, announced_ms, most = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local key = keys.batch(id)
local live_key, jobs_key = key .. ':live', key .. ':jobs'

local v = redis.call('HMGET', key, 'created', 'finished', 'kept', 'firing', 'asked')
if not v[1] then
  return { 'missing' }
elseif v[4] then
  return { 'firing' }
elseif v[2] then
  if tonumber(v[3] or 0) > 0 or tonumber(v[2]) > now_ms - kept_ms then
    return { 'finished' }
  end
  redis.call('DEL', key, live_key, jobs_key)
  return { 'missing' }
end
local reply = { v[5] and 'cancelled' or 'open' }
for _, member in ipairs(redis.call('SRANDMEMBER', live_key, most)) do
  local since = string.match(redis.call('HGET', jobs_key, member) or '', '^0 pending (%d+)$')
  if since and tonumber(since) <= now_ms - announced_ms then
    reply[#reply + 1] = member
  end
end
return reply
