-- By key, from after the cursor. ARGV: prefix, space, limit, cursor (empty: from the first). Answers key, version,
-- expiry, value of each, and in front the last key looked at when there may be more: expired ones are passed over, at
-- most as many as were asked for in one call.
--@include _notes
local space, limit = ARGV[2], tonumber(ARGV[3])
local from = ARGV[4] == '' and '-' or '(' .. ARGV[4]
local found = redis.call('ZRANGEBYLEX', keys.notes('keys:' .. space), from, '+', 'LIMIT', 0, limit)
local answer = { #found == limit and found[#found] or '' }
for _, key in ipairs(found) do
  local version, expires, value = note.find(space, key)
  if version then
    local at = #answer
    answer[at + 1], answer[at + 2] = key, string.format('%.0f', version)
    answer[at + 3], answer[at + 4] = string.format('%.0f', expires), value
  end
end
return answer
