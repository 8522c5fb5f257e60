-- What a change of a job does to keys that, on a Cluster, are on another node: a message in the `outbox` of its queue, in
-- the same atom. The caller delivers it at once (outbox.ts), maintenance if the caller died. Every message may come twice.
-- On one server the change is made here and now.

local function send(queue, ...)
  outbox.waiting = redis.call('RPUSH', keys.queue(queue, 'outbox'), table.concat({ ... }, ' '))
end

-- The reply, on a Cluster with the number of messages that the caller has to deliver.
function outbox.wrap(reply)
  return is_cluster and { reply, outbox.waiting } or reply
end

-- The worker hears of it with its next heartbeat.
function outbox.cancel(record, worker)
  if is_cluster then
    return send(record.queue, 'cancel', worker, record.id, record.f.lease)
  end
  redis.call('HSET', keys.workers('cancels:' .. worker), record.id, record.f.lease)
end

function outbox.uncancel(record, worker)
  if is_cluster then
    return send(record.queue, 'uncancel', worker, record.id)
  end
  redis.call('HDEL', keys.workers('cancels:' .. worker), record.id)
end

-- How its batch counts a job from now on: numbered, so that an older message does not undo a newer one.
function outbox.batch(record, batch, counted)
  send(record.queue, 'batch', batch, record.queue, record.id, queues.next_seq(record.queue), counted)
end

-- A child asks a parent elsewhere to tell it of its end.
function outbox.link(child, parent_id, policy, guess, how)
  send(child.queue, 'link', parent_id, child.queue, child.id, policy, child.f.birth or '0', how, guess or '')
end

function outbox.tell(from, queue, id, birth, parent_id, ended, policy)
  send(from, 'told', queue, id, birth, parent_id, ended, policy)
end
