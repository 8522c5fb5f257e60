-- The values of the call, one after the other; ARGV[1] is the prefix.
local args = { at = 1 }

function args.next()
  args.at = args.at + 1
  return ARGV[args.at]
end

function args.number()
  return tonumber(args.next())
end

-- A count and as many texts.
function args.list()
  local list = {}
  for i = 1, args.number() do
    list[i] = args.next()
  end
  return list
end
