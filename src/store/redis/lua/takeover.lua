-- Claims a record that is issued or released, or running and lapsed, provided that it is still the one that was seen.
-- ARGV: 1 version, state, claimant and attempt that were seen, 2 the new record up to its creation, 3 lease, span and
-- length of no payload, 4 what follows a token's expiry, 5 span in ms, 6 channel.
-- Gives 1 done, 0 if it is no longer what was seen.
if head:sub(1, 22) ~= ARGV[1] or head:byte(2) == 1 and not lapsed() then
  return 0
end
local expires = ''
if is_token() then
  expires = head:sub(108, 115)
  if expires == '\0\0\0\0\0\0\0\0' then
    expires = struct.pack('>I8', redis.call('PEXPIRETIME', name))
  end
end
if ARGV[5] == '0' then
  redis.call('DEL', name)
else
  redis.call('SET', name, ARGV[2] .. created() .. ARGV[3] .. expires .. ARGV[4], 'PX', ARGV[5])
end
wake(ARGV[6])
return 1
