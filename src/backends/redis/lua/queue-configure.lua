-- queues.configure: writes the fields if the version is the one the caller merged them with. Refines memory/queues.ts.
--   values: queue, version it was read at (0: none), 1 if limits or lanes changed, jobs to move at once, then the fields
--   reply:  false, or when it was created and the new version
--@include _go-on
--@include _library
--@include _args
--@include _relimit
local name, seen, relimits, max = args.next(), args.number(), args.next(), args.number()
local key = keys.queue(name, 'config')
local before = redis.call('HMGET', key, 'version', 'created')
if tonumber(before[1] or 0) ~= seen then
  return outbox.wrap(false)
end
local created = before[2] or string.format('%.0f', now_ms)
redis.call('HSET', key, 'created', created, 'version', seen + 1, unpack(ARGV, args.at + 1))
queues.enlist(name)
if relimits == '1' then
  relimiting.begin(name)
  if relimiting.pass({ name }, max) >= max then
    rings.ring('scheduled')
  end
end
rings.ring_ready(name)
flush_all()
return outbox.wrap({ created, seen + 1 })
