-- Begins an epoch: an empty queue that only those can use who know its birth.
-- ARGV: number, identity ('-': do not ask who the server is), first lease, version of the configuration, paused (0, 1),
-- lower lane share. Answers: OK birth | IDENTITY identity | AHEAD number
local number, wanted, floor, config, paused, share = unpack(ARGV)
local STATE, HELD = KEYS[1], KEYS[5]
--@include _identity
--@include _note
if wanted ~= '-' then
  local here = identity()
  if here ~= wanted then return { 'IDENTITY', here } end
end
-- Whatever somebody else has put there instead is cleared below.
local found = redis.pcall('HMGET', STATE, 'number', 'birth')
local there = tonumber(string.match(found[1] or '', '^%d+$'))
if there and there > tonumber(number) and there < 2 ^ 53 then return { 'AHEAD', found[1] } end
if found[1] == number then return { 'OK', found[2] } end

-- The first write frees, so the others pass also when memory is full.
redis.call('UNLINK', unpack(KEYS))
local time = redis.call('TIME')
local birth = string.format('%d%06d', time[1], time[2])
local tag = number .. '.' .. birth
redis.call(
  'HSET', STATE,
  'epoch', tag, 'number', number, 'birth', birth, 'identity', wanted, 'floor', floor,
  'config', config, 'paused', paused, 'share', share,
  'high', 0, 'normal', 0, 'low', 0, 'passed', '0 0 0', 'backlog', '000', 'parked', 0, 'revoked', 0, 'stands', '',
  'note', NOTE
)
redis.call('HSET', HELD, '#', tag .. NOTE)
return { 'OK', birth }
