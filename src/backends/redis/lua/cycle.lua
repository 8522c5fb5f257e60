-- jobs.apply and jobs.claim: settle what a worker brings, then claim. Refines memory/claim.ts and memory/settle.ts.
--   values: template of a completion (JSON), number of sections of plain completions, those sections (_complete.lua),
--           number of other changes, each as JSON (_settle.lua), and for a claim its values (_claim-call.lua)
--   reply:  positions and verdicts of completions that were not applied; verdicts of the other changes; the claim
--@include _go-on
--@include _keys
--@include _time
--@include _calls
--@include _rings
--@include _queues
--@include _ids
--@include _status
--@include _args
--@include _lazy
local template = args.next()
local unapplied, verdicts = {}, {}
local sections = args.number()
-- Functions are made where they are needed: each costs 2 µs in a server that was idle (_lazy.lua).
if sections > 0 then
--@include _complete
  local position = 0
  for _ = 1, sections do
    position = completing.section(template, unapplied, position)
  end
end
for i = 1, args.number() do
  verdicts[i] = library().settling.settle(cjson.decode(args.next()))
end
if loaded then
  loaded.flush_jobs()
end
local reply = { unapplied, verdicts }
if ARGV[args.at + 1] then
--@include _lanes
--@include _claim
--@include _claim-call
  reply[3] = claiming.claim()
end
flush()
return wrap(reply)
