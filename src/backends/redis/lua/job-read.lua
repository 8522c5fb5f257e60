-- Whole jobs. ARGV: prefix, 1 to look into every queue for those that are not where they are believed to be (not on a
-- Cluster), then queue and id of each. Answers each as `records.reply`, false where there is none.
--@include _keys
--@include _record
local answer = {}
for at = 3, #ARGV, 2 do
  local queue, id = ARGV[at], ARGV[at + 1]
  if ARGV[2] == '1' then queue = records.queue_of(id, queue) end
  answer[#answer + 1] = queue and records.reply(queue, id)
end
return answer
