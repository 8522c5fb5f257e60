-- Forgets tokens that this session holds, and at last the session itself. Only a dead one: if it is not, a late take of
-- it has come after another call like this, and whoever looks for sessions must find it again.
-- ARGV: tag, session, last (0, 1), then fields. Answers: OK | a refusal
--@include _gate
--@include _fields
local state, refusal = enterWhole('s:' .. ARGV[2])
if not state then return refusal end
local mark, own = ARGV[2] .. '/', {}
for index, note in ipairs(notesFrom(4)) do
  if note and string.sub(note, 1, #mark) == mark then own[#own + 1] = ARGV[3 + index] end
end
forget(HELD, own)
if ARGV[3] == '1' and state[6] == 'dead' then redis.call('HDEL', STATE, 's:' .. ARGV[2]) end
return { 'OK' }
