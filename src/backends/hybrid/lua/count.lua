-- Adds to the counters of a queue, for people: nothing decides by them. They outlive epochs, and go when nobody counts.
-- KEYS: the counters. ARGV: seconds to keep them, then names and numbers in turn.
for at = 2, #ARGV, 2 do
  redis.call('HINCRBY', KEYS[1], ARGV[at], ARGV[at + 1])
end
redis.call('EXPIRE', KEYS[1], ARGV[1])
return 'OK'
