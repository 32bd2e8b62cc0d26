-- What the scripts below have in common. KEYS[1] is the record; places in it are counted from 1.
local name = KEYS[1]

-- All that stands in front of the payload, and a token's first expiry if there is no payload.
local head = redis.call('GETRANGE', name, 0, 114)

local function runs_under(claimant)
  return head:sub(1, 18) == '\2\1' .. claimant
end

local function lapsed()
  local lease, span = struct.unpack('>I8I8', head, 88)
  return span - redis.call('PTTL', name) >= lease
end

-- Whether the claim may end: by its claimant, or on its behalf once it has lapsed.
-- ARGV: 1 whose claim, 2 who ends it, 3 '1' if it has to have lapsed.
local function may_end()
  return runs_under(ARGV[1]) and (ARGV[3] == '0' or lapsed())
end

-- Whether the one who ends the claim has done so before and left this state. An operator who uses the claimant of the
-- runner has not: the runner may have ended its claim by itself.
local function has_ended(state)
  return head:sub(1, 18) == '\2' .. state .. ARGV[2] and (ARGV[3] == '0' or ARGV[1] ~= ARGV[2])
end

local function is_token()
  return bit.band(head:byte(25), 1) ~= 0
end

-- When the record began, as eight bytes of milliseconds since 1970. Less than 2^40 is milliseconds before the last change.
local function created()
  local before = struct.unpack('>I8', head, 80)
  if before >= 1099511627776 then
    return head:sub(80, 87)
  end
  return struct.pack('>I8', redis.call('PEXPIRETIME', name) - struct.unpack('>I8', head, 96) - before)
end

-- The head of the record once it has settled. ARGV: 2 whose it is, 4 flag of the payload, 5 lease, span and length of
-- the payload.
local function settled()
  local flags = string.char(bit.band(head:byte(24), 7) + ARGV[4])
  return '\2\2' .. ARGV[2] .. head:sub(19, 22) .. '\0' .. flags .. head:sub(25, 79) .. created() .. ARGV[5]
end

-- What stands behind the payload.
local function behind()
  return head:byte(25) ~= 0 and redis.call('GETRANGE', name, 107, -1) or ''
end

-- Wakes the requests that wait. The record is changed even if the user has no right to publish.
local function wake(channel)
  if head:byte(23) ~= 0 then
    redis.pcall(channel:sub(6, 6) == '}' and 'PUBLISH' or 'SPUBLISH', channel, name)
  end
end

-- The record with its times, or nil.
local function found()
  local bytes = redis.call('GET', name)
  return bytes and { bytes, redis.call('PTTL', name), redis.call('PEXPIRETIME', name) }
end

