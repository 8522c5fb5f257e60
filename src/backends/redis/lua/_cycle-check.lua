-- Jobs of one call that wait for each other could never start. Refines core/flow.ts (findCycle).
-- `nodes`: list of { id, deps = { { parent, policy } … } }. Answers the ids of a circle, the first again at its end; or nil.
local cycles = {}

local function circle_from(start, by_id, stuck)
  local path, at, place = {}, start, {}
  while at and not place[at] do
    path[#path + 1] = at
    place[at] = #path
    local parent
    for _, dep in ipairs(by_id[at].deps) do
      parent = parent or (stuck[dep[1]] and dep[1])
    end
    at = parent
  end
  local circle = {}
  for i = at and place[at] or 1, #path do
    circle[#circle + 1] = path[i]
  end
  circle[#circle + 1] = at
  return circle
end

function cycles.find(nodes)
  local by_id, open, children, free = {}, {}, {}, {}
  for _, node in ipairs(nodes) do
    by_id[node.id] = node
  end
  for _, node in ipairs(nodes) do
    local count = 0
    for _, dep in ipairs(node.deps) do
      if by_id[dep[1]] then
        count = count + 1
        children[dep[1]] = children[dep[1]] or {}
        table.insert(children[dep[1]], node.id)
      end
    end
    open[node.id] = count
    if count == 0 then
      free[#free + 1] = node.id
    end
  end
  while #free > 0 do
    local id = table.remove(free)
    open[id] = nil
    for _, child in ipairs(children[id] or {}) do
      open[child] = open[child] - 1
      if open[child] == 0 then
        free[#free + 1] = child
      end
    end
  end
  for _, node in ipairs(nodes) do
    if open[node.id] then
      return circle_from(node.id, by_id, open)
    end
  end
  return nil
end
