-- jobs.insert. Refines memory/insert.ts; the quick way is for jobs that no gate concerns, in queues without limits.
--   values: 'plain', number of sections, each: queue, n, ids as 16 bytes each in one text, a header that all have or
--           nothing. With one: the number of texts that follow, n contents or 1 with a content a line; without: n times header
--           and content. A header is "priority attempts", - for the default
--   reply:  positions (from 1) of those that were there already
--   values: 'any', n, then n times: id, content, extras as JSON
--   reply:  0, then outcome and id of each; or 1 and the refusal
--@include _insert-idle
--@include _keys
--@include _time
--@include _calls
--@include _rings
--@include _queues
--@include _ids
--@include _status
--@include _args
--@include _lazy
--@include _insert-plain
local function finish()
  if loaded then
    loaded.flush_jobs()
  end
  local standing = rings.standing()
  if standing then
--@include _lanes
--@include _claim
--@include _hand-over
    for queue, parked in pairs(standing) do
      rings.ready[queue] = hand_over(queue, parked) or nil
    end
  end
  flush()
end

if args.next() == 'plain' then
  local known, position = {}, 0
  for _ = 1, args.number() do
    position = plain.section(known, position)
  end
  finish()
  return wrap(known)
end
local jobs = {}
for i = 1, args.number() do
  jobs[i] = { id = args.next(), content = args.next(), x = cjson.decode(args.next()) }
end
local refusal, results = library().inserting.insert(jobs)
if refusal then
  return wrap({ 1, refusal })
end
finish()
return wrap({ 0, results })
