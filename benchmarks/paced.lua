-- What wrk sends, at a rate of its own: each connection pauses before its next batch, now longer and now shorter, as
-- devices that know nothing of each other do. Arguments: those of batches.lua,
-- and last the milliseconds of a pause on average.

dofile(debug.getinfo(1, "S").source:match("^@(.*)paced%.lua$") .. "batches.lua")

local begin = init
local pause

function init(arguments)
  begin(arguments)
  pause = tonumber(arguments[#arguments])
end

function delay()
  return math.floor(-pause * math.log(1 - math.random()) + 0.5)
end
