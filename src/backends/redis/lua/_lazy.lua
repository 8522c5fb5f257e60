-- The library, made when the first job needs it: a script makes its functions anew with every call, and a hundred of
-- them took 40 µs, more than a plain insert.
local loaded

local function library()
  if loaded then
    return loaded
  end
--@include _library
  loaded = {
    uniques = uniques,
    inserting = inserting,
    settling = settling,
    outbox = outbox,
    flush_jobs = function()
      records.flush()
      places.flush()
    end,
  }
  return loaded
end

-- The reply, on a Cluster with the number of messages that the caller has to deliver.
local function wrap(reply)
  return is_cluster and { reply, loaded and loaded.outbox.waiting or 0 } or reply
end

local function flush()
  if loaded then
    loaded.flush_jobs()
  end
  queues.flush()
  rings.flush()
end
