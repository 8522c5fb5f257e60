-- One page of workers, in the order in which they came. ARGV: prefix, where to begin, how many, then the fields. Answers id
-- and fields of each; a worker that is forgotten meanwhile has none.
--@include _keys
local fields = {}
for at = 4, #ARGV do fields[#fields + 1] = ARGV[at] end
local from = tonumber(ARGV[2])
local answer = {}
for _, id in ipairs(redis.call('ZRANGE', keys.workers('all'), from, from + ARGV[3] - 1)) do
  local values = redis.call('HMGET', keys.worker(id), unpack(fields))
  values[#values + 1] = id
  answer[#answer + 1] = values
end
return answer
