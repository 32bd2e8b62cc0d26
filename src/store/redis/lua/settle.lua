-- Ends a running claim with an answer.
-- ARGV: 1 whose claim, 2 whose it is from now on, 3 '1' if it has to have lapsed, 4 flag of the payload, 5 lease, span
-- and length of the payload, 6 the payload, 7 span in ms, 8 channel.
-- Gives 1 done, 2 done before, nil if nothing is there, else the record with its times.
if runs_under(ARGV[1]) and (ARGV[3] == '0' or lapsed()) then
  if ARGV[7] == '0' then
    redis.call('DEL', name)
  else
    local flags = string.char(bit.band(head:byte(24), 7) + ARGV[4])
    local behind = head:byte(25) ~= 0 and redis.call('GETRANGE', name, 107, -1) or ''
    redis.call('SET', name, '\2\2' .. ARGV[2] .. head:sub(19, 22) .. '\0' .. flags .. head:sub(25, 79) .. created()
      .. ARGV[5] .. ARGV[6] .. behind, 'PX', ARGV[7])
  end
  wake(ARGV[8])
  return 1
elseif head:sub(1, 18) == '\2\2' .. ARGV[2] and (ARGV[3] == '0' or ARGV[1] ~= ARGV[2]) then
  return 2
end
return found()
