-- Notes: a space is a hash key -> "<version> <expiresAtMs or nothing> <value>" and a zset of its keys for listing by
-- name; `expiry` knows what ends when. Refines memory/notes.ts. An expired note is absent, whether it was pruned or not.
--@include _keys
--@include _keys-apart
--@include _time

local note = {}

-- Answers version, expiry (0: none) and value; nothing when there is none.
function note.find(space, key)
  local text = redis.call('HGET', keys.notes('space:' .. space), key)
  if not text then return nil end
  local version, expires, start = string.match(text, '^(%d+) (%d*) ()')
  local at = tonumber(expires) or 0
  if at > 0 and at <= now_ms then return nil end
  return tonumber(version), at, string.sub(text, start)
end

-- NUL is in no name.
local function expiry_name(space, key)
  return space .. '\0' .. key
end

function note.write(space, key, value, expires)
  local version = redis.call('INCR', keys.notes('version'))
  local shown = expires > 0 and string.format('%.0f', expires) or ''
  redis.call('HSET', keys.notes('space:' .. space), key, string.format('%.0f', version) .. ' ' .. shown .. ' ' .. value)
  redis.call('ZADD', keys.notes('keys:' .. space), 0, key)
  if expires > 0 then
    redis.call('ZADD', keys.notes('expiry'), expires, expiry_name(space, key))
  else
    redis.call('ZREM', keys.notes('expiry'), expiry_name(space, key))
  end
  return version
end

function note.remove(space, key)
  redis.call('HDEL', keys.notes('space:' .. space), key)
  redis.call('ZREM', keys.notes('keys:' .. space), key)
  redis.call('ZREM', keys.notes('expiry'), expiry_name(space, key))
end
