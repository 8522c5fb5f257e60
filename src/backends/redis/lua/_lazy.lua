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
    flush_jobs = function()
      records.flush()
      places.flush()
    end,
  }
  return loaded
end

local function flush()
  if loaded then
    loaded.flush_jobs()
  end
  queues.flush()
  rings.flush()
end
