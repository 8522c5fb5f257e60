-- Rate lines. Refines core/rate.ts (reserveStart, takeStart) exactly; a limit is "interval burst", a state "start admit".
-- A line in the past is as good as none: it expires, with a minute to spare.
local rates = {}
local SPARE_MS = 60000

local function parse(limit)
  local interval, burst = string.match(limit, '^(%S+) (%S+)$')
  return tonumber(interval), tonumber(burst)
end

-- The buckets that apply to a job, as key and limit.
function rates.of(queue, limit_key)
  local buckets = {}
  if queue.rate ~= '' then
    buckets[1] = { key = keys.queue(queue.name, 'rate'), limit = queue.rate }
  end
  if queue.key_rate ~= '' and limit_key then
    buckets[#buckets + 1] = { key = keys.queue(queue.name, 'rate:' .. limit_key), limit = queue.key_rate }
  end
  return buckets
end

function rates.read(key)
  local state = redis.call('GET', key)
  if not state then
    return { start = now_ms, admit = now_ms }
  end
  local start, admit = string.match(state, '^(%S+) (%S+)$')
  return { start = tonumber(start), admit = tonumber(admit) }
end

local function write(key, state)
  local text = string.format('%.17g %.17g', state.start, state.admit)
  local life_ms = math.max(math.ceil(math.max(state.start, state.admit) - now_ms), 0) + SPARE_MS
  redis.call('SET', key, text, 'PX', string.format('%.0f', life_ms))
end

function rates.token_at(state, limit)
  local interval, burst = parse(limit)
  return state.start - (burst - 1) * interval
end

-- core/rate.ts placeInLine: changes the state, answers the wait.
local function place_in_line(state, limit)
  local interval, burst = parse(limit)
  local tolerance = (math.ceil(burst / 2) - 1) * interval
  local token = rates.token_at(state, limit)
  local line = math.max(now_ms, state.admit - tolerance)
  local place = math.max(line, token)
  state.admit = (token > line and token + tolerance or math.max(now_ms, state.admit)) + interval
  return math.ceil(place - now_ms)
end

function rates.reserve(bucket)
  local state = rates.read(bucket.key)
  local wait_ms = place_in_line(state, bucket.limit)
  write(bucket.key, state)
  return wait_ms
end

-- All buckets give a token, or none does. Answers 0 or the wait.
function rates.take(buckets)
  local wait_ms, granted = 0, {}
  for _, bucket in ipairs(buckets) do
    local state = rates.read(bucket.key)
    local interval = parse(bucket.limit)
    local short_ms = rates.token_at(state, bucket.limit) - now_ms
    if short_ms <= 0 then
      state.start = math.max(now_ms, state.start) + interval
      granted[#granted + 1] = { key = bucket.key, state = state }
    elseif short_ms <= interval / 4 then
      wait_ms = math.max(wait_ms, math.ceil(short_ms))
    else
      wait_ms = math.max(wait_ms, place_in_line(state, bucket.limit))
      write(bucket.key, state)
    end
  end
  if wait_ms == 0 then
    for _, one in ipairs(granted) do
      write(one.key, one.state)
    end
  end
  return wait_ms
end
