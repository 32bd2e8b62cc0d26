-- Claims a record that is issued or released, or running and lapsed, provided that it is still the one that was seen.
-- KEYS: the record. ARGV: 1 state, attempt and claimant that were seen, 2 the new record up to its creation, 3 lease,
-- span and length of no payload, 4 what follows a token's expiry, 5 span in ms, 6 channel.
-- Gives 1 done, 0 where it is no longer what was seen.
local head = redis.call('GETRANGE', KEYS[1], 0, 107)
if head:sub(1, 2) .. head:sub(5, 24) == '\1' .. ARGV[1] then
  local lease, span = struct.unpack('>I8I8', head, 81)
  if head:byte(2) ~= 1 or span - redis.call('PTTL', KEYS[1]) >= lease then
    local created, flags, expires = head:sub(73, 80), head:byte(3), ''
    if created == '\0\0\0\0\0\0\0\0' then
      created = struct.pack('>I8', redis.call('PEXPIRETIME', KEYS[1]) - span)
    end
    if bit.band(flags, 4) ~= 0 then
      expires = head:sub(101, 108)
      if expires == '\0\0\0\0\0\0\0\0' then
        expires = struct.pack('>I8', redis.call('PEXPIRETIME', KEYS[1]))
      end
    end
    if ARGV[5] == '0' then
      redis.call('DEL', KEYS[1])
    else
      redis.call('SET', KEYS[1], ARGV[2] .. created .. ARGV[3] .. expires .. ARGV[4], 'PX', ARGV[5])
    end
    if flags >= 32 then
      redis.pcall(ARGV[6]:sub(6, 6) == '}' and 'PUBLISH' or 'SPUBLISH', ARGV[6], KEYS[1])
    end
    return 1
  end
end
return 0
