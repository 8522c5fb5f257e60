-- ARGV: prefix, space, key. Answers whether there was one.
--@include _notes
local found = note.find(ARGV[2], ARGV[3])
note.remove(ARGV[2], ARGV[3])
return found and 1 or 0
