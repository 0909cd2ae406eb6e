-- One exchange of one gateway: its record is written, numbers are handed out, all records are read. Atomic, as scripts are.
-- KEYS  1 records by gateway, each "milliseconds:record"; 2 the next number of each lane
-- ARGV  1 gateway, 2 its record ("": it leaves), 3 milliseconds after which a record is removed, 4 the server's time that the
--       gateway expects (0: it does not know), 5 how far off it may be, 6 seconds for which numbers are kept, 7 the most gateways,
--       8 what numbers end before; then for each lane: its name, what the gateway has heard was handed out, the least number to hand out, where to begin
--       if the first was lost here, how many
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local expected = tonumber(ARGV[4])
-- A command that was held up says what was true then.
if expected > 0 and math.abs(now - expected) > tonumber(ARGV[5]) then
  return { string.format('%.0f', now), 'late', {}, {} }
end
local known = redis.call('HGETALL', KEYS[1])
local live, found = {}, false
for at = 1, #known, 2 do
  local written = tonumber(string.match(known[at + 1], '^%d+'))
  if not written or now - written > tonumber(ARGV[3]) then
    redis.call('HDEL', KEYS[1], known[at])
  elseif known[at] == ARGV[1] then
    found = true
  else
    live[#live + 1] = known[at]
    live[#live + 1] = string.format('%.0f', now - written)
    live[#live + 1] = string.sub(known[at + 1], string.find(known[at + 1], ':', 1, true) + 1)
  end
end
if ARGV[2] == '' then
  redis.call('HDEL', KEYS[1], ARGV[1])
  return { string.format('%.0f', now), 'left', {}, {} }
end
if not found and #live / 3 >= tonumber(ARGV[7]) then
  return { string.format('%.0f', now), 'full', {}, {} }
end
redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f', now) .. ':' .. ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
local numbers = {}
for at = 9, #ARGV, 5 do
  local next = tonumber(redis.call('HGET', KEYS[2], ARGV[at]) or '0')
  -- What is no number of a ticket is no count of ours.
  if not next or not (next >= 0 and next <= tonumber(ARGV[8])) then
    next = 0
  end
  local from = math.max(next, tonumber(ARGV[at + 2]))
  if next < tonumber(ARGV[at + 1]) then
    -- Others still draw from blocks that are not known here any more.
    from = tonumber(ARGV[at + 3])
  end
  redis.call('HSET', KEYS[2], ARGV[at], string.format('%.0f', from + tonumber(ARGV[at + 4])))
  numbers[#numbers + 1] = string.format('%.0f', from)
end
if #numbers > 0 then
  redis.call('EXPIRE', KEYS[2], ARGV[6])
end
return { string.format('%.0f', now), 'done', live, numbers }
