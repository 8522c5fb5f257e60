-- What happened to one job. ARGV: prefix, 1 to look into every queue if it is not in the one named (not on a Cluster), queue,
-- id, `attempts` or `logs`. Answers the job and the lines, oldest first.
--@include _keys
--@include _record
local queue, id = ARGV[3], ARGV[4]
if ARGV[2] == '1' then queue = records.queue_of(id, queue) end
local reply = queue and records.reply(queue, id)
if not reply then return nil end
return { reply, redis.call('LRANGE', keys.job(queue, id) .. ':' .. ARGV[5], 0, -1) }
