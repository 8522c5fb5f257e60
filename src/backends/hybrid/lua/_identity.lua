-- Who this server is. '-': it does not let scripts ask (ACL, managed Redis), so nobody can know that it is still the same.
local function identity()
  local info = redis.pcall('INFO', 'replication')
  if type(info) ~= 'string' then return '-' end
  -- A plain find: a pattern costs five times as much here.
  local _, at = string.find(info, 'master_replid:', 1, true)
  return at and string.sub(info, at + 1, at + 40) or '-'
end
