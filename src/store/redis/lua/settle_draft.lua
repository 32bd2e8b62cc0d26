-- Ends a running claim with an answer that is too large to pass through a script. It stands behind 107 bytes of head in
-- a draft of its own, to which the script gives the head and the record's name.
-- KEYS: 2 the draft. ARGV: 1 whose claim, 2 whose it is from now on, 3 '1' if it has to have lapsed, 4 flag of the
-- payload, 5 lease, span and length of the payload, 6 length of the draft, 7 span in ms, 8 channel, 9 what stands behind
-- the payload. Gives 1 done, 2 done before, 3 if there is no draft, a string that has to stand behind the payload and
-- does not, nil if nothing is there, else the record with its times.
local draft = KEYS[2]
if may_end() then
  local behind = behind()
  -- A user who may settle need not be one who may do this: then there is no draft.
  if redis.pcall('STRLEN', draft) ~= tonumber(ARGV[6]) then
    return 3
  elseif behind ~= ARGV[9] then
    redis.call('DEL', draft)
    return behind
  end
  redis.call('SETRANGE', draft, 0, settled())
  redis.call('PEXPIRE', draft, ARGV[7])
  local renamed = redis.pcall('RENAME', draft, name)
  if renamed.err then
    redis.call('DEL', draft)
    return 3
  end
  wake(ARGV[8])
  return 1
end
-- A server that takes no writes has refused the draft too, and still answers from the record.
redis.pcall('DEL', draft)
if has_ended('\2') then
  return 2
end
return found()
