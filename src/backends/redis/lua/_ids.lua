-- Ids inside a queue: 16 bytes instead of 36 characters. `jobs` and `running` have them as fields, lanes and `all` as entries;
-- keys, messages and all other places have the text. The quick ways never convert: the client sends and takes both.
-- An entry of a lane has one byte more where the job has a hash of its own, so that a claim knows without asking.
local ids = { MARK = '+' }
local TEXT = '^(%x%x%x%x%x%x%x%x)%-(%x%x%x%x)%-(%x%x%x%x)%-(%x%x%x%x)%-(%x%x%x%x)(%x%x%x%x%x%x%x%x)$'

-- A text that is no id stands for itself: no job has it.
function ids.bytes(text)
  local a, b, c, d, e, f = string.match(text, TEXT)
  if not a then
    return text
  end
  return struct.pack('>I4I2I2I2I2I4', tonumber(a, 16), tonumber(b, 16), tonumber(c, 16), tonumber(d, 16), tonumber(e, 16),
    tonumber(f, 16))
end

-- Also of an entry with its mark.
function ids.text(bytes)
  return string.format('%08x-%04x-%04x-%04x-%04x%08x', struct.unpack('>I4I2I2I2I2I4', bytes))
end
