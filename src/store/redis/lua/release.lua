-- Ends a running claim without an answer; a token is issued again, with its first expiry.
-- KEYS: the record. ARGV: 1 whose claim, 2 who releases it, 3 '1' where it has to have lapsed, 4 span, 5 span in ms,
-- 6 channel. Gives 1 done, 2 done before, nil where nothing is there, else the record with its times.
local head = redis.call('GETRANGE', KEYS[1], 0, 107)
if head == '' then
  return false
end
local state, owner, lapsed = head:sub(1, 2), head:sub(9, 24), true
if state == '\1\1' and owner == ARGV[1] then
  if ARGV[3] == '1' then
    local lease, span = struct.unpack('>I8I8', head, 81)
    lapsed = span - redis.call('PTTL', KEYS[1]) >= lease
  end
  if lapsed then
    local created, flags = head:sub(73, 80), head:byte(3)
    if created == '\0\0\0\0\0\0\0\0' then
      created = struct.pack('>I8', redis.call('PEXPIRETIME', KEYS[1]) - struct.unpack('>I8', head, 89))
    end
    local now = redis.call('TIME')
    now = now[1] * 1000 + math.floor(now[2] / 1000)
    local becomes, expires = '\3', now + ARGV[5]
    if bit.band(flags, 4) ~= 0 then
      becomes, expires = '\0', struct.unpack('>I8', head, 101)
    end
    if expires <= now then
      redis.call('DEL', KEYS[1])
    else
      redis.call('SETRANGE', KEYS[1], 0, '\1' .. becomes .. string.char(bit.band(flags, 15)) .. head:sub(4, 8) .. ARGV[2]
        .. head:sub(25, 72) .. created .. head:sub(81, 88) .. ARGV[4])
      redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', expires))
    end
    if flags >= 32 then
      redis.pcall(ARGV[6]:sub(6, 6) == '}' and 'PUBLISH' or 'SPUBLISH', ARGV[6], KEYS[1])
    end
    return 1
  end
elseif (state == '\1\3' or state == '\1\0' and head:sub(5, 8) ~= '\0\0\0\0') and owner == ARGV[2]
  and (ARGV[3] == '0' or ARGV[1] ~= ARGV[2]) then
  return 2
end
return { redis.call('GET', KEYS[1]), redis.call('PTTL', KEYS[1]), redis.call('PEXPIRETIME', KEYS[1]) }
