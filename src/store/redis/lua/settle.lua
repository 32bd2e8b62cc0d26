-- Ends a running claim with an answer.
-- KEYS: the record. ARGV: 1 whose claim, 2 whose it is from now on, 3 '1' where it has to have lapsed,
-- 4 flag of the payload, 5 lease, span and length of the payload, 6 the payload, 7 span in ms, 8 channel.
-- Gives 1 done, 2 done before, nil where nothing is there, else the record with its times.
local head = redis.call('GETRANGE', KEYS[1], 0, 99)
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
    local created, flags, rare = head:sub(73, 80), head:byte(3), ''
    if created == '\0\0\0\0\0\0\0\0' then
      created = struct.pack('>I8', redis.call('PEXPIRETIME', KEYS[1]) - struct.unpack('>I8', head, 89))
    end
    if bit.band(flags, 12) ~= 0 then
      rare = redis.call('GETRANGE', KEYS[1], 100, -1)
    end
    if ARGV[7] == '0' then
      redis.call('DEL', KEYS[1])
    else
      local kept = string.char(bit.band(flags, 15) + ARGV[4])
      redis.call('SET', KEYS[1], '\1\2' .. kept .. head:sub(4, 8) .. ARGV[2] .. head:sub(25, 72) .. created
        .. ARGV[5] .. ARGV[6] .. rare, 'PX', ARGV[7])
    end
    if flags >= 32 then
      -- A user who may not publish has settled all the same.
      redis.pcall(ARGV[8]:sub(6, 6) == '}' and 'PUBLISH' or 'SPUBLISH', ARGV[8], KEYS[1])
    end
    return 1
  end
elseif state == '\1\2' and owner == ARGV[2] and (ARGV[3] == '0' or ARGV[1] ~= ARGV[2]) then
  return 2
end
return { redis.call('GET', KEYS[1]), redis.call('PTTL', KEYS[1]), redis.call('PEXPIRETIME', KEYS[1]) }
