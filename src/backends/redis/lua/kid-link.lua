-- Cluster only: a child elsewhere waits for a parent of this queue. Refines memory/insert.ts (dependOn).
--   values: parent's queue, parent, child's queue, child, policy, birth
--   reply:  the status of a parent that has ended, 'missing', or 'live': it will tell
--@include _go-on
--@include _library
local queue, id = ARGV[2], ARGV[3]
local parent = records.load(queue, id)
if not parent then
  return 'missing'
end
if FINAL[records.status(parent)] then
  return records.status(parent)
end
local entry = table.concat({ ARGV[4], ARGV[5], ARGV[6], ARGV[7] }, ' ')
local kids = keys.queue(queue, 'kids:' .. id)
redis.call('LREM', kids, 0, entry)
redis.call('RPUSH', kids, entry)
records.set(parent, 'kids', '1')
flush_all()
return 'live'
