-- ARGV: tag, version, paused (0, 1), lower lane share, channel of the bell, queue. An old version changes nothing.
-- Answers: OK | a refusal. Runs when memory is full.
--@include _gate
--@include _put
local state, refusal = enterWhole('config', 'parked')
if not state then return refusal end
if not tonumber(state[6]) then return condemn(state) end
if tonumber(ARGV[2]) > tonumber(state[6]) then
  put(STATE, 'config', ARGV[2], 'paused', ARGV[3], 'share', ARGV[4], 'parked', ARGV[3] == '1' and state[7] or 0)
  if ARGV[3] ~= '1' and state[7] == '1' then redis.call('PUBLISH', ARGV[5], ARGV[6]) end
end
return { 'OK' }
