-- Which of these tokens Redis does not know. Those below the new floor cannot come later either.
-- ARGV: tag, floor at least, then fields. Answers: OK absent sessions | a refusal. Runs when memory is full.
--@include _gate
--@include _put
--@include _fields
local state, refusal = enterWhole('floor')
if not state then return refusal end
local floor = tonumber(state[6])
if not floor then return condemn(state) end
if tonumber(ARGV[2]) > floor then
  floor = tonumber(ARGV[2])
  put(STATE, 'floor', ARGV[2])
end
local all, pushers, sessions, isListed = redis.call('HGETALL', STATE), {}, {}, {}
local function list(session)
  if isListed[session] then return end
  isListed[session] = true
  sessions[#sessions + 1] = session
end
for at = 1, #all, 2 do
  local kind = string.sub(all[at], 1, 2)
  if kind == 's:' then
    list(string.sub(all[at], 3))
  elseif kind == 'p:' and (tonumber(all[at + 1]) or 0) < floor then
    pushers[#pushers + 1] = all[at]
  end
end
forget(STATE, pushers)
local absent = {}
for index, note in ipairs(notesFrom(3)) do
  if not note or note == 'x' then
    absent[#absent + 1] = ARGV[2 + index]
  elseif note ~= '' then
    -- As a rule in the state as well; but what is held must never lose its holder.
    local holder = string.match(note, '^(.*)/%d+$')
    -- Somebody else has written here: nobody would find it when its holder dies.
    if not holder then return condemn(state) end
    list(holder)
  end
end
return { 'OK', absent, sessions }
