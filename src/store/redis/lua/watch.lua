-- Notes that somebody waits for the end of a running claim, so that its end is published.
-- ARGV: 1 whose claim. Gives 1 if it runs, 0 if there is nothing to wait for.
if not runs_under(ARGV[1]) then
  return 0
end
if head:byte(23) == 0 then
  redis.call('SETRANGE', name, 22, '\1')
end
return 1
