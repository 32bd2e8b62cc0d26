-- Prolongs a running claim. ARGV: 1 whose claim, 2 lease and span, 3 span in ms. Gives 1 done, 0 lost.
if not runs_under(ARGV[1]) then
  return 0
end
if head:sub(80, 87) == '\0\0\0\0\0\0\0\0' then
  -- A server that is out of memory refuses this, and a claim must not lapse for it.
  redis.pcall('SETRANGE', name, 79, created())
end
if head:sub(88, 103) ~= ARGV[2] then
  redis.call('SETRANGE', name, 87, ARGV[2])
end
redis.call('PEXPIRE', name, ARGV[3])
return 1
