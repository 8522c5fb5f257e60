-- Everything a change of jobs may need, in the order in which the parts build on each other.
--@include _keys
--@include _time
--@include _calls
--@include _rings
--@include _record
--@include _queues
--@include _queues-apart
--@include _ids
--@include _order
--@include _parts
--@include _outbox
--@include _places
--@include _rates
--@include _gates
--@include _unique
--@include _parents
--@include _batches
--@include _cycle-check
--@include _replace
--@include _insert
--@include _settle

-- The end of every script that changed jobs.
local function flush_all()
  records.flush()
  places.flush()
  queues.flush()
  rings.flush()
end
