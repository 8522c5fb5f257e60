-- Whole jobs. ARGV: prefix, then queue and id of each. Answers each as `records.reply`, false where there is none.
--@include _keys
--@include _record
local answer = {}
for at = 2, #ARGV, 2 do
  answer[#answer + 1] = records.reply(ARGV[at], ARGV[at + 1])
end
return answer
