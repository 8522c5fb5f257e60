-- What happened to one job. ARGV: prefix, queue, id, `attempts` or `logs`. Answers the job and the lines, oldest first.
--@include _keys
--@include _record
local queue, id = ARGV[2], ARGV[3]
local reply = records.reply(queue, id)
if not reply then return nil end
return { reply, redis.call('LRANGE', keys.job(queue, id) .. ':' .. ARGV[4], 0, -1) }
