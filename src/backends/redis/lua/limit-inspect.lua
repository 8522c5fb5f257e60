-- limits.inspect: slots in use and waiters of a queue or of a key, and when the next token is there.
--   values: queue, 1 with a key, key    reply: false, or used, limit, waiting, ms to the next token (empty texts: none)
--@include _keys
--@include _time
--@include _rings
--@include _queues
--@include _rates
local name, has_key, key = ARGV[2], ARGV[3] == '1', ARGV[4]
local queue = queues.find(name)
if not queue then
  return false
end
local field = has_key and 'key ' .. key or 'queue'
local line = has_key and 'line:' .. key or 'line'
local rate = has_key and queue.key_rate or queue.rate
local wait_ms = ''
if rate ~= '' then
  local bucket = keys.queue(name, has_key and 'rate:' .. key or 'rate')
  local known = redis.call('EXISTS', bucket) == 1
  wait_ms = known and string.format('%.17g', math.max(0, rates.token_at(rates.read(bucket), rate) - now_ms)) or '0'
end
return {
  redis.call('HGET', keys.queue(name, 'slots'), field) or '0',
  tostring((has_key and queue.key_slots or not has_key and queue.slots) or ''),
  redis.call('ZCARD', keys.queue(name, line)),
  wait_ms,
}
