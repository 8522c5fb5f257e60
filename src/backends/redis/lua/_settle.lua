-- Apply: one transition with all its consequences. Refines core/apply.ts (judge, patch, auditRow) and memory/settle.ts.
-- A change is the JSON of change-args.ts, with everything an edge means looked up in core/edges.ts: nothing here knows
-- what an edge is for. Bounds are core/limits.ts's: store.ts writes them in.
local AUDIT_MAX = '@auditRowsMax'
local RUN_LOGS_MAX = '@logLinesMax'
local JOB_LOGS_MAX = '@jobLogLinesMax'

local function has(list, value)
  for _, one in ipairs(list) do
    if one == value then
      return true
    end
  end
  return false
end

local function guard_holds(record, change)
  if not has(change.from, records.status(record)) then
    return false
  end
  if change.orphanOf and change.orphanOf ~= string.match(record.f.orphan or '', '^%S+') then
    return false
  end
  return not change.lease or change.lease == records.number(record, 'lease')
end

local function mark_of(edge, lease)
  return string.format('%s %.0f', edge, lease or 0)
end

local function was_applied(record, change)
  local mark = record.f.edge
  if not mark and record.f.status == 'completed' then
    mark = mark_of('complete', records.number(record, 'lease')) -- the quick way writes no mark: it is the only one there
  end
  if mark == mark_of(change.edge, change.lease) then
    return true
  end
  return change.alt ~= nil and mark == mark_of(change.alt.edge, change.lease)
end

local function patch(record, change)
  local set = records.set
  set(record, 'updated', now_ms)
  if change.progress then
    set(record, 'progress', change.progress)
  end
  if change.edge == 'report' then
    return
  end
  if change.edge == 'requestCancel' then
    set(record, 'cancel', '1')
    if change.remove then
      set(record, 'remove', '1')
    end
    return
  end
  set(record, 'edge', mark_of(change.edge, change.lease))
  if change.replays then
    set(record, 'replayedAt', now_ms)
    set(record, 'replayedBy', change.actor)
  end
  if change.edge == 'markReplayed' then
    set(record, 'replayedInto', change.into)
    return
  end
  if change.resets then
    set(record, 'attempt', nil)
    set(record, 'crashes', nil)
  end
  if change.counts then
    set(record, 'attempt', records.number(record, 'attempt') + 1)
  end
  if change.crash then
    set(record, 'crashes', records.number(record, 'crashes') + 1)
  end
  if change.error then
    set(record, 'error', change.error)
  end
  if change.result then
    set(record, 'result', change.result)
  end
  if change.ran then
    set(record, 'started', now_ms - change.ran)
  end
  if change.delay then
    set(record, 'runAt', now_ms + change.delay)
  end
  set(record, 'finished', change.ended and now_ms or nil)
  set(record, 'cancel', nil)
end

local function json_number(value)
  return value and string.format('%.0f', value) or 'null'
end

-- One row of the audit trail as JSON; error is JSON already.
local function audit(record, change)
  if not change.audit then
    return
  end
  local ran = change.auditsRun
  local attempt = records.number(record, 'attempt') + ((ran and not change.counts) and 1 or 0)
  local started = ran and tonumber(record.f.started) or nil
  local note = change.note or change.actor
  local row = string.format(
    '{"attempt":%.0f,"lease":%s,"status":"%s","worker":%s,"startedAtMs":%s,"finishedAtMs":%s,"durationMs":%s,"error":%s,"note":%s}',
    attempt,
    json_number(ran and (change.lease or 0) or 0),
    change.audit,
    ran and record.f.worker and cjson.encode(record.f.worker) or 'null',
    json_number(started),
    json_number(now_ms),
    json_number(started and now_ms - started),
    change.error or 'null',
    note and cjson.encode(note) or 'null'
  )
  local key = keys.job(record.queue, record.id) .. ':attempts'
  records.set(record, 'rows', '1')
  if redis.call('RPUSH', key, row) > AUDIT_MAX then
    redis.call('LPOP', key)
  end
end

-- Lines carry their index within the run, so a report that is repeated adds nothing.
local function append_logs(record, change)
  if not change.lines then
    return
  end
  local lease = json_number(change.lease or 0)
  local count = record.f.logLease == lease and records.number(record, 'logCount') or 0
  local from = change.logFrom or 0
  local key = keys.job(record.queue, record.id) .. ':logs'
  for i = math.max(count - from, 0) + 1, #change.lines do
    if from + i <= RUN_LOGS_MAX then
      redis.call('RPUSH', key, change.lines[i])
    end
  end
  records.set(record, 'logLease', lease)
  records.set(record, 'logCount', math.max(count, from + #change.lines))
  redis.call('LTRIM', key, -JOB_LOGS_MAX, -1)
end

-- Takes the job out of the store itself.
function settling.forget(record)
  record.erased = true
  local key = keys.job(record.queue, record.id)
  redis.call('HDEL', keys.queue(record.queue, 'jobs'), record.bytes)
  redis.call('DEL', key, key .. ':attempts', key .. ':logs')
  order.drop(record.queue, record.bytes)
end

-- Deletes a job that has left its place.
local function erase(record)
  gates.release_slots(record)
  gates.release_group(record)
  uniques.free(record)
  settling.forget(record)
  order.erase(record.queue, record.bytes)
  if record.f.batch then
    batches.quit(record)
  end
  parents.tell_children(record)
  if record.f.batch then
    batches.complete(record.f.batch)
  end
  rings.ring_end(record.id)
end

-- Everything that hangs on the end of a job.
local function end_job(record)
  gates.release_group(record)
  uniques.free(record)
  parents.tell_children(record)
  if record.f.batch then
    batches.complete(record.f.batch)
  end
  if record.f.remove then
    places.leave(record)
    erase(record)
  end
end

local function move(record, change)
  places.leave(record)
  patch(record, change)
  audit(record, change)
  if change.edge == 'return' then
    return places.enter_ready(record, true)
  end
  if change.edge == 'replay' then
    uniques.hold_again(record)
    parents.revive(record)
  end
  gates.release_slots(record)
  if change.ended then
    places.enter_final(record, change.ended)
    return end_job(record)
  end
  records.set(record, 'waits', change.waits)
  if not change.delay then
    records.set(record, 'runAt', now_ms)
  end
  if change.edge == 'defer' then
    records.set(record, 'rated', '1') -- it has its place in the rate line already
  end
  gates.admit(record)
end

local function apply(record, change)
  if change.edge == 'report' then
    patch(record, change)
    append_logs(record, change)
  elseif change.edge == 'requestCancel' then
    patch(record, change)
    outbox.cancel(record, record.f.worker)
    rings.ring('control:' .. record.f.worker)
  elseif change.edge == 'markReplayed' then
    patch(record, change)
    audit(record, change)
  elseif change.edge == 'remove' then
    places.leave(record)
    erase(record)
  else
    move(record, change)
  end
end

-- Answers the verdict (core/apply.ts judge).
function settling.settle(change)
  local loaded = records.loaded[change.id]
  local queue = loaded and loaded.queue or records.queue_of(change.id, change.queue or '')
  local record = queue and records.load(queue, change.id)
  if not record then
    return 'missing'
  end
  if change.edge == 'markReplayed' and change.into and change.into == record.f.replayedInto then
    return 'already'
  end
  if not guard_holds(record, change) then
    return was_applied(record, change) and 'already' or 'stale'
  end
  local is_alternative = record.f.cancel and change.alt
  local settled = is_alternative and change.alt or change
  if settled.edge == 'replay' and not uniques.may_hold_again(record) then
    return 'conflict'
  end
  apply(record, settled)
  return is_alternative and 'alternative' or 'applied'
end
