-- The parts of the library that know each other, declared before any of them is filled: one table each, because Lua
-- allows a function 60 names from outside and a script 200 of its own.
local places = { returned = {} }
local gates = {}
local uniques = {}
local parents = {}
local batches = {}
local inserting = {}
local settling = {}
local outbox = { waiting = 0 }
local FINAL = { completed = true, failed = true, cancelled = true }
