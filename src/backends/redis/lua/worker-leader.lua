-- Who leads a role now. ARGV: prefix, role. Answers the holder and the term, or nothing where nobody does.
--@include _keys
--@include _time
local text = redis.call('HGET', keys.workers('leaders'), ARGV[2])
if not text then return nil end
local term, until_ms, holder = string.match(text, '^(%d+) (%d+) (.*)$')
if tonumber(until_ms) <= now_ms then return nil end
return { holder, term }
