-- Removes a record, whatever it is. KEYS: the record. ARGV: 1 channel. Gives 1 removed, 0 where nothing is there.
local head = redis.call('GETRANGE', KEYS[1], 0, 2)
local removed = redis.call('DEL', KEYS[1])
if #head == 3 and head:byte(3) >= 32 then
  redis.pcall(ARGV[1]:sub(6, 6) == '}' and 'PUBLISH' or 'SPUBLISH', ARGV[1], KEYS[1])
end
return removed
