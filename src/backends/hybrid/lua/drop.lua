-- Forgets tokens that this session holds, and at last the session itself.
-- ARGV: tag, session, last (0, 1), then fields. Answers: OK | a refusal
--@include _gate
--@include _fields
local state, refusal = enterWhole()
if not state then return refusal end
local mark, own = ARGV[2] .. '/', {}
for index, note in ipairs(notesFrom(4)) do
  if note and string.sub(note, 1, #mark) == mark then own[#own + 1] = ARGV[3 + index] end
end
forget(HELD, own)
if ARGV[3] == '1' then redis.call('HDEL', STATE, 's:' .. ARGV[2]) end
return { 'OK' }
