-- The live status of jobs, for people: nothing reads it back. A later lease wins over an earlier one; times are the server's.
-- KEYS: the hash of each job. ARGV, three per key: lease, seconds to keep it, and as JSON the fields to set, the times to
-- set in milliseconds from now, and the names of those that say nothing any more.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for at, key in ipairs(KEYS) do
  local lease, seconds, change = ARGV[3 * at - 2], ARGV[3 * at - 1], cjson.decode(ARGV[3 * at])
  local last = redis.call('HGET', key, 'lease')
  if not last or tonumber(last) <= tonumber(lease) then
    local fields = { 'lease', lease, 'updated', string.format('%.0f', now) }
    for name, value in pairs(change.fields) do
      fields[#fields + 1], fields[#fields + 2] = name, value
    end
    for name, ms in pairs(change.times) do
      fields[#fields + 1], fields[#fields + 2] = name, string.format('%.0f', now + ms)
    end
    redis.call('HSET', key, unpack(fields))
    if #change.gone > 0 then redis.call('HDEL', key, unpack(change.gone)) end
    redis.call('EXPIRE', key, seconds)
  end
end
return 'OK'
