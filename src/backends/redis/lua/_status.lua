-- The status of a job without the rest of it, and whether it has a hash. A job without one runs if it is in `running`, and
-- waits in a lane if it is not.
local function status_of(queue, id, bytes)
  local status = redis.call('HGET', keys.job(queue, id), 'status')
  if status then
    return status, true
  end
  return redis.call('HEXISTS', keys.queue(queue, 'running'), bytes) == 1 and 'running' or 'queued', false
end
