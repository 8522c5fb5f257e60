-- Jobs of a queue from the newest, a bounded stretch of them. Every entry of `all` has an absolute number that it keeps
-- (`all:base` counts what was taken from the head); entries that outlived their neighbours are in `all:old` by that number,
-- and `all:gone` tells those of a deleted job from that of its namesake (_order.lua).
-- ARGV: prefix, queue, number to stay below (empty: from the newest), how many entries to look at, how many bytes to
-- answer, statuses as ",a,b," (empty: any).
-- Answers the number to go on below (0: that was all), then number and job of each.
--@include _keys
--@include _ids
--@include _status
--@include _record
local queue, look, bytes_left, statuses = ARGV[2], tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6]
local all, old = keys.queue(queue, 'all'), keys.queue(queue, 'all:old')
local base = tonumber(redis.call('GET', keys.queue(queue, 'all:base')) or 0)
local top = base + redis.call('LLEN', all)
local below = ARGV[3] == '' and top or math.min(tonumber(ARGV[3]), top)

local gone = keys.queue(queue, 'all:gone')
local has_gone = redis.call('EXISTS', gone) == 1

local answer = { '0' }

local function is_gone(number, binary)
  return has_gone and number < tonumber(redis.call('ZSCORE', gone, binary) or 0)
end

local function is_wanted(id, binary)
  if statuses == '' then return true end
  local status = status_of(queue, id, binary)
  return string.find(statuses, ',' .. status .. ',', 1, true) ~= nil
end

-- False when the answer is full.
local function take(number, binary)
  local id = ids.text(binary)
  local reply = not is_gone(number, binary) and is_wanted(id, binary) and records.reply(queue, id)
  if reply then
    answer[#answer + 1] = { string.format('%.0f', number), reply }
    bytes_left = bytes_left - #reply[3]
  end
  return bytes_left > 0
end

local function go_on_below(number)
  answer[1] = string.format('%.0f', number)
  return answer
end

if below > base then
  local low = math.max(base, below - look)
  local entries = redis.call('LRANGE', all, low - base, below - 1 - base)
  for at = #entries, 1, -1 do
    if not take(low + at - 1, entries[at]) then return go_on_below(low + at - 1) end
  end
  look, below = look - #entries, low
end
if below == 0 or redis.call('EXISTS', old) == 0 then return below > base and go_on_below(below) or answer end
if look <= 0 then return go_on_below(below) end
local entries = redis.call('ZREVRANGEBYSCORE', old, '(' .. string.format('%.0f', below), '-inf', 'WITHSCORES', 'LIMIT', 0, look)
for at = 1, #entries, 2 do
  local number = tonumber(entries[at + 1])
  if not take(number, entries[at]) then return go_on_below(number) end
  below = number
end
return #entries == look * 2 and go_on_below(below) or answer
