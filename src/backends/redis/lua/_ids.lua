-- Ids in the lists that every waiting job is in: 16 bytes instead of 36 characters, which keeps a waiting job below 400
-- bytes. Everywhere else an id is a text.
local ids = {}
local TEXT = '^(%x%x%x%x%x%x%x%x)%-(%x%x%x%x)%-(%x%x%x%x)%-(%x%x%x%x)%-(%x%x%x%x)(%x%x%x%x%x%x%x%x)$'

function ids.bytes(text)
  local a, b, c, d, e, f = string.match(text, TEXT)
  return struct.pack('>I4I2I2I2I2I4', tonumber(a, 16), tonumber(b, 16), tonumber(c, 16), tonumber(d, 16), tonumber(e, 16),
    tonumber(f, 16))
end

function ids.text(bytes)
  return string.format('%08x-%04x-%04x-%04x-%04x%08x', struct.unpack('>I4I2I2I2I2I4', bytes))
end
