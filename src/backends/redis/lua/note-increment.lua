-- Adds to a number, from 0. ARGV: prefix, space, key, what to add. Answers the sum as text, or nothing when there is
-- something else than a number.
--@include _notes
local space, key = ARGV[2], ARGV[3]
local version, expires, value = note.find(space, key)
local before = version and tonumber(value) or 0
if version and not tonumber(value) then return nil end
local sum = before + tonumber(ARGV[4])
-- The shortest text that means this very number.
local text = string.format('%.15g', sum)
if tonumber(text) ~= sum then text = string.format('%.17g', sum) end
note.write(space, key, text, version and expires or 0)
return text
