-- Fences a session, then lists what it holds: no take of it numbered up to this one can land or be answered any more.
-- ARGV: tag, session, claim number or 'dead', cursor. Answers: OK cursor fields | a refusal. Runs when memory is full.
--@include _gate
--@include _put
local session, number = ARGV[2], ARGV[3]
local state, refusal = enterWhole('s:' .. session, 'stands')
if not state then return refusal end
local last = state[6] or '0'
if last ~= 'dead' and not tonumber(last) then return condemn(state) end
if last ~= 'dead' and (number == 'dead' or tonumber(number) > tonumber(last)) then put(STATE, 's:' .. session, number) end
if string.match(state[7] or '', '^%S+ (%S+)') == session then put(STATE, 'stands', '') end

local page = redis.call('HSCAN', HELD, ARGV[4], 'COUNT', 1000)
local notes, fields, mark = page[2], {}, session .. '/'
for at = 1, #notes, 2 do
  if string.sub(notes[at + 1], 1, #mark) == mark then fields[#fields + 1] = notes[at] end
end
return { 'OK', page[1], fields }
