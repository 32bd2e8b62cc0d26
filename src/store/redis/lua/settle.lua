-- Ends a running claim with an answer.
-- ARGV: 1 whose claim, 2 whose it is from now on, 3 '1' if it has to have lapsed, 4 flag of the payload, 5 lease, span
-- and length of the payload, 6 the payload, 7 span in ms, 8 channel.
-- Gives 1 done, 2 done before, nil if nothing is there, else the record with its times.
if may_end() then
  if ARGV[7] == '0' then
    redis.call('DEL', name)
  else
    redis.call('SET', name, settled() .. ARGV[6] .. behind(), 'PX', ARGV[7])
  end
  wake(ARGV[8])
  return 1
elseif has_ended('\2') then
  return 2
end
return found()
