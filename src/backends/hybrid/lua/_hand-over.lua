-- Nothing waits, and a take stands: its session is handed the first of the tokens, as that take would have brought them, and hears of
-- it. A take stands while `stands` names it (the last that stood here), the claim it was part of stands (`hands`, the key of its session),
-- and no later take of its session has followed it (`s:`; a look clears `stands`). `s:` is then its number and a half, which tells the next take.
-- Answers who is handed what, or nil.
local function whoStands()
  local hands, session, number, claim, most = string.match(stands, '^(%S+) (%S+) (%d+) (%d+) (%d+)$')
  if not hands or redis.call('HGET', STATE, 's:' .. session) ~= number then return nil end
  if redis.pcall('GET', hands) ~= claim then return nil end
  local heard = redis.pcall('PUBSUB', 'NUMSUB', hands) -- a user who may not ask is rung
  if heard.err or heard[2] == 0 then return nil end
  return { hands = hands, session = session, number = number, claim = claim, most = tonumber(most) }
end

-- What `held` says of the first `count` fields from now on.
local function marks(standing, count)
  local mark, pairs = standing.session .. '/' .. standing.number, {}
  for index = 1, count do pairs[2 * index - 1], pairs[2 * index] = fields[index + 1], mark end
  return pairs
end

local function tell(standing, count)
  redis.pcall('UNLINK', standing.hands)
  change('stands', '')
  change('s:' .. standing.session, standing.number .. '.5')
  local head = table.concat({ ARGV[6], ARGV[1], standing.number, standing.claim }, ' ')
  -- A message that is refused is one that was lost.
  redis.pcall('PUBLISH', standing.hands, head .. '\n' .. table.concat(texts, '\n', 1, count))
end
