-- Takes waiting tokens back. One that is absent cannot come later: its lease falls below the floor.
-- ARGV: tag, then fields. Answers: OK, then per field 'x' (taken back), '-' (absent) or `session/number` (in flight)
-- | a refusal. Runs when memory is full.
--@include _gate
--@include _put
--@include _fields
local state, refusal = enterWhole('floor', 'revoked')
if not state then return refusal end
local floor, revoked = tonumber(state[6]), tonumber(state[7])
if not (floor and revoked) then return condemn(state) end
local answers, marks = { 'OK' }, {}
for index, note in ipairs(notesFrom(2)) do
  local field = ARGV[1 + index]
  if not note then
    floor = math.max(floor, tonumber(string.match(field, ':(%d+)$')) + 1)
  elseif note == '' then
    marks[#marks + 1], marks[#marks + 2] = field, 'x'
  end
  answers[1 + index] = not note and '-' or note == '' and 'x' or note
end
inParts(1, #marks, function(from, till) put(HELD, unpack(marks, from, till)) end)
-- As text: how Redis writes large numbers of Lua is not the same in all versions.
put(STATE, 'floor', string.format('%.0f', floor), 'revoked', revoked + #marks / 2)
return answers
