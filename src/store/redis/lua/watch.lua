-- Notes that somebody waits for the end of a running claim, so that its end is published.
-- KEYS: the record. ARGV: 1 whose claim. Gives 1 where it runs, 0 where there is nothing to wait for.
local head = redis.call('GETRANGE', KEYS[1], 0, 23)
if head:sub(1, 2) ~= '\1\1' or head:sub(9, 24) ~= ARGV[1] then
  return 0
end
if head:byte(3) < 32 then
  redis.call('SETRANGE', KEYS[1], 2, string.char(head:byte(3) + 32))
end
return 1
