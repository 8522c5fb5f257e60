-- Does this Redis take writes, and is the epoch whole? A server that answers but refuses to write (a disk or a memory that is
-- full, too few replicas, a replica, an ACL) is of no use. Writes with the commands that the other scripts write with, and
-- leaves nothing. KEYS: the five of the queue, then one for this. ARGV: tag, or '' where there is no epoch.
-- Answers: OK identity | a refusal
--@include _gate
local PROBE = KEYS[6]
-- When memory is full only the first write of a script is refused. What is left of an epoch that is over makes room.
local first = redis.pcall('HSET', PROBE, 'probe', 1)
if type(first) == 'table' and string.find(first.err, 'OOM', 1, true) then
  if ARGV[1] == '' then redis.call('UNLINK', unpack(KEYS)) end
  return first
end
redis.call('UNLINK', PROBE)
redis.call('HSET', PROBE, 'probe', 1)
redis.call('HDEL', PROBE, 'probe')
redis.call('RPUSH', PROBE, 'probe')
redis.call('LRANGE', PROBE, 0, 0)
redis.call('LPOP', PROBE, 1)
if ARGV[1] == '' then return { 'OK', identity() } end
local state, refusal = enterWhole()
if not state then return refusal end
return { 'OK', state[2] }
