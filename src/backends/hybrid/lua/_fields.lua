-- For arguments of any number: Lua passes some 8000 values at once.
local function inParts(first, last, call)
  for at = first, last, 5000 do call(at, math.min(at + 4999, last)) end
end

-- What `held` says of ARGV[first] and those after it, in that order; false where it has nothing.
local function notesFrom(first)
  local notes = {}
  inParts(first, #ARGV, function(from, till)
    for index, note in ipairs(redis.call('HMGET', HELD, unpack(ARGV, from, till))) do
      notes[from - first + index] = note
    end
  end)
  return notes
end

local function forget(key, fields)
  inParts(1, #fields, function(from, till) redis.call('HDEL', key, unpack(fields, from, till)) end)
end
