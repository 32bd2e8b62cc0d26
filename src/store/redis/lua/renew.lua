-- Prolongs a running claim.
-- KEYS: the record. ARGV: 1 whose claim, 2 lease and span, 3 span in ms. Gives 1 done, 0 lost.
local head = redis.call('GETRANGE', KEYS[1], 0, 99)
if head:sub(1, 2) ~= '\1\1' or head:sub(9, 24) ~= ARGV[1] then
  return 0
end
if head:sub(73, 80) == '\0\0\0\0\0\0\0\0' then
  -- A server that is out of memory refuses this, and a claim must not lapse for it.
  redis.pcall('SETRANGE', KEYS[1], 72,
    struct.pack('>I8', redis.call('PEXPIRETIME', KEYS[1]) - struct.unpack('>I8', head, 89)))
end
if head:sub(81, 96) ~= ARGV[2] then
  redis.call('SETRANGE', KEYS[1], 80, ARGV[2])
end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
