-- Names of keys that insert and claim do not need: each function costs them 2 µs in a server that was idle (_lazy.lua).
function keys.batch(id)
  return prefix .. ':{_batch:' .. id .. '}'
end

function keys.notes(part)
  return prefix .. ':{_notes}:' .. part
end

function keys.schedules(part)
  return prefix .. ':{_schedules}:' .. part
end
