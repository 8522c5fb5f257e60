-- Forgets settled tokens, then hands waiting ones to a session. The order of lanes refines core/priority.ts pickLane.
-- ARGV: tag, session, claim number, tokens wanted, the fields that are settled, a line each; and where claims of this session may
-- stand (_hand-over.lua): its `hands`, the number of the claim or '' (it stands no longer), how many it may be handed, for how many
-- ms the claim stands from now on, or 0: its last take is yet to come.
-- Answers: OK answered, then tokens, a line each, some lines to a text | PAUSED answered | DUP | SESSION | a refusal. `answered`: 1
-- if the take before stood and was answered. Runs also when memory is full.
--@include _gate
--@include _put
local session, number, wanted = ARGV[2], ARGV[3], tonumber(ARGV[4])
local state, refusal = enter('paused', 'share', 'passed', 'parked', 'revoked', 's:' .. session)
if not state then return refusal end
local paused, share, before, parked, last = state[6], tonumber(state[7]), state[8], state[9], state[11]
local revoked = tonumber(state[10])
if not isHeldWhole(state) then return torn(state) end
local isDead = last == 'dead'
-- And a half once that take, which stood, was answered.
local lastNumber = tonumber(last or 0)
local hands = ARGV[6]
-- Somebody else has written here.
if not (share and revoked and before and (isDead or lastNumber)) then return condemn(state) end
local isDup = not isDead and last and tonumber(number) <= lastNumber
if (isDead or isDup or paused == '1') and not areLanesWhole(state) then return torn(state) end
if isDead then return { 'SESSION' } end

-- Before the number counts: twice does no harm, and the caller keeps its list until a call with it is answered.
local find, sub = string.find, string.sub
local settled, count, lines, start = {}, 0, ARGV[5], 1
while start <= #lines do
  local ends = find(lines, '\n', start, true) or #lines + 1
  count = count + 1
  settled[count] = sub(lines, start, ends - 1)
  start = ends + 1
end
for at = 1, count, 5000 do
  redis.call('HDEL', HELD, unpack(settled, at, math.min(at + 4999, count)))
end
if isDup then return { 'DUP' } end
local answered = lastNumber % 1 > 0 and 1 or 0
-- With its last take the claim stands, in whatever queues it brought nothing; until then none of this session does.
local function noteStand(stands)
  if stands and ARGV[9] ~= '0' then
    redis.pcall('SET', hands, ARGV[7], 'PX', ARGV[9]) -- where that may not be, nothing is handed over
  elseif hands then
    redis.pcall('UNLINK', hands)
  end
end
if paused == '1' then
  put(STATE, 's:' .. session, number, 'parked', 1)
  noteStand(hands and ARGV[7] ~= '')
  return { 'PAUSED', answered }
end

-- How often each lane was passed over while it had tokens.
local passed = { 0, 0, 0 }
local wasEmpty = { state[3] == 0, state[4] == 0, state[5] == 0 }
local touched = { false, false, false }

-- Which lane gives each of the next `count` tokens.
local function pick(count)
  local left = { state[3], state[4], state[5] }
  local order, shares = {}, { 0, 0, 0 }
  for index = 1, count do
    local best = left[1] > 0 and 1 or left[2] > 0 and 2 or left[3] > 0 and 3
    if not best then break end
    local chosen = best
    if share > 0 then
      if left[2] > 0 and passed[2] >= share - 1 then
        chosen = 2
      elseif best < 3 and left[3] > 0 and passed[3] >= math.max(share - 2, 1) then
        chosen = 3
      end
    end
    for lane = 1, 3 do
      if lane == chosen or left[lane] == 0 then passed[lane] = 0 else passed[lane] = passed[lane] + 1 end
    end
    left[chosen] = left[chosen] - 1
    order[index] = chosen
    shares[chosen] = shares[chosen] + 1
  end
  return order, shares
end

-- nil: the lane is shorter than it should be.
local function pop(lane, count)
  touched[lane] = true
  local texts = redis.call('LPOP', LANE[lane], count)
  if not texts or #texts ~= count then return nil end
  state[2 + lane] = state[2 + lane] - count
  return texts
end

local function popMixed(count)
  local order, shares = pick(count)
  local from, at = {}, { 0, 0, 0 }
  for lane = 1, 3 do
    from[lane] = shares[lane] == 0 and {} or pop(lane, shares[lane])
    if not from[lane] then return nil end
  end
  local texts = {}
  for index, lane in ipairs(order) do
    at[lane] = at[lane] + 1
    texts[index] = from[lane][at[lane]]
  end
  return texts
end

local function popNext(count)
  local only, lanes = 0, 0
  for lane = 1, 3 do
    if state[2 + lane] > 0 then only, lanes = lane, lanes + 1 end
  end
  if lanes > 1 then return popMixed(count) end
  passed = { 0, 0, 0 }
  return pop(only, math.min(count, state[2 + only]))
end

-- A text without words is no token: nobody knows it by this name either.
local function fieldOf(text)
  return sub(text, 1, (find(text, ' ', 1, true) or 0) - 1)
end

-- What was taken back while it waited is dropped here. nil: a token that nobody knows.
local function withoutRevoked(texts)
  local fields, kept, gone = {}, {}, {}
  for index, text in ipairs(texts) do fields[index] = fieldOf(text) end
  for index, note in ipairs(redis.call('HMGET', HELD, unpack(fields))) do
    if not note then return nil end
    if note == 'x' then gone[#gone + 1] = fields[index] else kept[#kept + 1] = texts[index] end
  end
  if #gone > 0 then
    redis.call('HDEL', HELD, unpack(gone))
    revoked = revoked - #gone
  end
  return kept
end

-- Revoked tokens in front of all others go first, many at a time: whoever wants one token would have to take them one by
-- one. False: the lane is shorter than it should be.
local function strip(lane)
  for round = 1, 10 do
    local count = math.min(round == 1 and 10 or 1000, state[2 + lane])
    if revoked == 0 or count == 0 then return true end
    local front, fields, gone = redis.call('LRANGE', LANE[lane], 0, count - 1), {}, 0
    if #front < count then return false end
    for index, text in ipairs(front) do fields[index] = fieldOf(text) end
    local notes = redis.call('HMGET', HELD, unpack(fields))
    while notes[gone + 1] == 'x' do gone = gone + 1 end
    if gone > 0 then
      if not pop(lane, gone) then return false end
      redis.call('HDEL', HELD, unpack(fields, 1, gone))
      revoked = revoked - gone
    end
    if gone < count then return true end
  end
  return true
end
for lane = 1, 3 do
  if revoked > 0 and not (isLaneWhole(state, lane) and strip(lane)) then return condemn(state) end
end

if before ~= '0 0 0' then
  for lane, count in ipairs({ string.match(before, '(%d+) (%d+) (%d+)') }) do passed[lane] = tonumber(count) end
end
local texts, size, rounds = {}, 0, 0
while size < wanted and rounds < 100 and state[3] + state[4] + state[5] > 0 do
  rounds = rounds + 1
  local popped = popNext(wanted - size)
  if popped and revoked > 0 then popped = withoutRevoked(popped) end
  if not popped then return condemn(state) end
  if size == 0 then
    texts, size = popped, #popped
  else
    for index = 1, #popped do texts[size + index] = popped[index] end
    size = size + #popped
  end
end
if size > 0 then
  local mark, marks = session .. '/' .. number, {}
  for index = 1, size do
    local text = texts[index]
    marks[2 * index - 1], marks[2 * index] = sub(text, 1, (find(text, ' ', 1, true) or 0) - 1), mark
  end
  -- A field that was not there before belongs to a token that nobody knows.
  if redis.call('HSET', HELD, unpack(marks)) > 0 then return condemn(state) end
end

local changed, changes = { 's:' .. session, number }, 2
local function change(field, value)
  changed[changes + 1], changed[changes + 2] = field, value
  changes = changes + 2
end
for lane = 1, 3 do
  if touched[lane] then
    change(LANES[lane], state[2 + lane])
  elseif not wasEmpty[lane] and not isLaneWhole(state, lane) then
    return condemn(state)
  end
end
local after = table.concat(passed, ' ')
if after ~= before then change('passed', after) end
if revoked ~= tonumber(state[10]) then change('revoked', revoked) end
if size < wanted and state[3] + state[4] + state[5] == 0 and parked ~= '1' then change('parked', 1) end
local stands = hands and size == 0 and ARGV[7] ~= ''
if stands then change('stands', table.concat({ hands, session, number, ARGV[7], ARGV[8] }, ' ')) end
put(STATE, unpack(changed))
noteStand(stands)
-- A text of its own for each would cost the worker a microsecond per job. All in one cost Redis 1.2 us: beyond its buffer of 8 KiB
-- Lua copies what it has joined over and over, which happens less when little is joined at a time.
local reply, LINES = { 'OK', answered }, 16
for from = 1, size, LINES do
  reply[#reply + 1] = table.concat(texts, '\n', from, math.min(from + LINES - 1, size))
end
return reply
