-- The clock of the store, read once per script: all stamps of one atom are equal. For tests store.ts writes another
-- clock in the place of TIME.
local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local now_us = time[1] * 1000000 + time[2]
