-- One note. ARGV: prefix, space, key. Answers version, expiry, value, or nothing.
--@include _notes
local version, expires, value = note.find(ARGV[2], ARGV[3])
if not version then return nil end
return { ARGV[3], string.format('%.0f', version), string.format('%.0f', expires), value }
