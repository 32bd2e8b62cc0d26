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

local function is_token()
  return bit.band(head:byte(25), 1) ~= 0
end

-- When the record began, as eight bytes.
local function created()
  local before = head:sub(80, 87)
  if before ~= '\0\0\0\0\0\0\0\0' then
    return before
  end
  return struct.pack('>I8', redis.call('PEXPIRETIME', name) - struct.unpack('>I8', head, 96))
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

