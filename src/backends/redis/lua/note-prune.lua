-- Removes expired notes. ARGV: prefix, limit. Answers how many.
--@include _notes
local due = redis.call('ZRANGEBYSCORE', keys.notes('expiry'), '-inf', now_ms, 'LIMIT', 0, tonumber(ARGV[2]))
for _, name in ipairs(due) do
  local at = string.find(name, '\0', 1, true)
  note.remove(string.sub(name, 1, at - 1), string.sub(name, at + 1))
end
return #due
