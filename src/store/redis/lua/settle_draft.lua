-- Ends a running claim with an answer that is too large to pass through a script. It stands behind 100 bytes of head in
-- a draft of its own, to which the script gives the head and the record's name.
-- KEYS: 1 the record, 2 the draft. ARGV: 1 whose claim, 2 whose it is from now on, 3 '1' where it has to have lapsed,
-- 4 flag of the payload, 5 lease, span and length of the payload, 6 length of the draft, 7 span in ms, 8 channel, 9 what
-- stands behind the payload. Gives 1 done, 2 done before, 3 where there is no draft, a string that has to stand behind
-- the payload and does not, nil where nothing is there, else the record with its times.
local head = redis.call('GETRANGE', KEYS[1], 0, 99)
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
    -- A user who may settle need not be one who may do this: then there is no draft.
    if redis.pcall('STRLEN', KEYS[2]) ~= tonumber(ARGV[6]) then
      return 3
    elseif rare ~= ARGV[9] then
      redis.call('DEL', KEYS[2])
      return rare
    end
    local kept = string.char(bit.band(flags, 15) + ARGV[4])
    redis.call('SETRANGE', KEYS[2], 0,
      '\1\2' .. kept .. head:sub(4, 8) .. ARGV[2] .. head:sub(25, 72) .. created .. ARGV[5])
    redis.call('PEXPIRE', KEYS[2], ARGV[7])
    local renamed = redis.pcall('RENAME', KEYS[2], KEYS[1])
    if renamed.err then
      redis.call('DEL', KEYS[2])
      return 3
    end
    if flags >= 32 then
      redis.pcall(ARGV[8]:sub(6, 6) == '}' and 'PUBLISH' or 'SPUBLISH', ARGV[8], KEYS[1])
    end
    return 1
  end
end
-- A server that takes no writes has refused the draft too, and tells what it knows all the same.
redis.pcall('DEL', KEYS[2])
if head == '' then
  return false
elseif state == '\1\2' and owner == ARGV[2] and (ARGV[3] == '0' or ARGV[1] ~= ARGV[2]) then
  return 2
end
return { redis.call('GET', KEYS[1]), redis.call('PTTL', KEYS[1]), redis.call('PEXPIRETIME', KEYS[1]) }
