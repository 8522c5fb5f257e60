-- What every script but `open` begins with: is this the epoch that the caller means, on the server where it was opened,
-- and whole? KEYS are the five keys of one queue, ARGV[1] is the tag of the epoch.
-- A refusal is: EPOCH | IDENTITY | TORN, identity of the server, tag found.
--@include _identity
--@include _note
local STATE, HELD = KEYS[1], KEYS[5]
local LANE = { KEYS[2], KEYS[3], KEYS[4] }
local LANES = { 'high', 'normal', 'low' }

local function torn(state)
  return { 'TORN', state[2], state[1] }
end

-- Answers fields of the state: tag, identity, the three lengths, then those asked for; or nil and the refusal.
-- `#` and the lengths are left to the caller, who often learns them from a command of its own.
local function enter(...)
  local state = redis.call('HMGET', STATE, 'epoch', 'identity', 'high', 'normal', 'low', ...)
  local here = state[2] == '-' and '-' or identity()
  if state[1] ~= ARGV[1] then return nil, { 'EPOCH', here, state[1] or '' } end
  if state[2] ~= here then return nil, { 'IDENTITY', here, state[1] } end
  for at = 3, 5 do state[at] = tonumber(state[at]) end
  if not (state[3] and state[4] and state[5]) then return nil, torn(state) end
  return state
end

-- For a loss found out only after a write, or where others do not look: without `#` every later call finds it too.
local function condemn(state)
  redis.call('HDEL', HELD, '#')
  return torn(state)
end

local function isHeldWhole(state)
  return redis.call('HGET', HELD, '#') == state[1] .. NOTE
end

local function isLaneWhole(state, lane)
  return redis.call('LLEN', LANE[lane]) == state[2 + lane]
end

local function areLanesWhole(state)
  return isLaneWhole(state, 1) and isLaneWhole(state, 2) and isLaneWhole(state, 3)
end

-- The whole gate, for scripts that are called seldom.
local function enterWhole(...)
  local state, refusal = enter(...)
  if not state then return nil, refusal end
  if not isHeldWhole(state) or not areLanesWhole(state) then return nil, torn(state) end
  return state
end
