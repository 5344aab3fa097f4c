-- What wrk sends: batches with random ids, cohorts and bits. Arguments: a seed, the day, and the reports in a batch.

local alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
local last = "AQgw" -- what 128 bits may end with
local random, format = math.random, string.format
local head
local labels = {}
local bits = {}

local function character(characters)
  local place = random(#characters)
  return characters:sub(place, place)
end

function init(arguments)
  math.randomseed(tonumber(arguments[1]))
  -- Drawing bits anew for each batch would cost wrk more than all else; ids are always new.
  for number = 1, 1024 do
    local text = {}
    for place = 1, 21 do
      text[place] = character(alphabet)
    end
    bits[number] = table.concat(text) .. character(last)
  end
  for place = 1, tonumber(arguments[3]) do
    local name = place == 1 and "homepage" or "homepage" .. place
    labels[place] = '{"metric":"' .. name .. '","version":1,"period":"' .. arguments[2] .. '","cohort":'
  end
  head = "POST /v1/batches HTTP/1.1\r\nHost: " .. wrk.headers["Host"]
    .. "\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
end

local function word()
  return random(0, 4294967295)
end

function request()
  local id = format("%08x%08x%08x%08x", word(), word(), word(), word())
  -- A device is in one cohort, and all its metrics have as many.
  local cohort, reports = random(0, 63) .. ',"bits":"', {}
  for place = 1, #labels do
    reports[place] = labels[place] .. cohort .. bits[random(1024)] .. '"}'
  end
  local body = '{"batch":"' .. id .. '","reports":[' .. table.concat(reports, ",") .. "]}"
  return format(head, #body) .. body
end

function done(summary, latency)
  local errors = summary.errors
  io.write(format(
    'RESULT {"requests": %d, "seconds": %f, "p50": %f, "p99": %f, "refused": %d, "broken": %d}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e6, latency:percentile(99) / 1e6,
    errors.status, errors.connect + errors.read + errors.write + errors.timeout
  ))
end
