-- Compare and set. ARGV: prefix, space, key, value, expected version (empty: any), ttl in ms (empty: it stays).
-- Answers the new version, or nothing when another one was there.
--@include _notes
local space, key, expected, ttl = ARGV[2], ARGV[3], ARGV[5], tonumber(ARGV[6])
if expected ~= '' and tonumber(expected) ~= (note.find(space, key) or 0) then return nil end
return note.write(space, key, ARGV[4], ttl and now_ms + ttl or 0)
