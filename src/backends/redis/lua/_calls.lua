-- Commands with many values: Lua can hand over some 8000 at once, so they go in pieces.
local CALL_MAX = 4000
local calls = {}

-- `values` may be pairs: the size of a piece is even.
function calls.each(command, key, values)
  local n = #values
  if n <= CALL_MAX then
    return redis.call(command, key, unpack(values))
  end
  for from = 1, n, CALL_MAX do
    redis.call(command, key, unpack(values, from, math.min(from + CALL_MAX - 1, n)))
  end
end

-- HMGET of any number of fields.
function calls.fields(key, names)
  local n = #names
  if n <= CALL_MAX then
    return redis.call('HMGET', key, unpack(names))
  end
  local found = {}
  for from = 1, n, CALL_MAX do
    local values = redis.call('HMGET', key, unpack(names, from, math.min(from + CALL_MAX - 1, n)))
    for i = 1, #values do
      found[from + i - 1] = values[i]
    end
  end
  return found
end
