-- Removes a record, whatever it is. ARGV: 1 channel. Gives 1 if it was there, else 0.
local removed = redis.call('DEL', name)
if #head >= 23 then
  wake(ARGV[1])
end
return removed
