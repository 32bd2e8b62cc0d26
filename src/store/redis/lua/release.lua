-- Ends a running claim without an answer, or takes it back; a token is issued again, with its first expiry.
-- ARGV: 1 whose claim, 2 who releases it, 3 '1' if it has to have lapsed, 4 span, 5 span in ms, 6 channel, 7 '1' if it is
-- taken back. Gives 1 done, 2 done before, nil if nothing is there, else the record with its times.
if may_end() then
  local now = redis.call('TIME')
  now = now[1] * 1000 + math.floor(now[2] / 1000)
  local state, expires = '\3', now + ARGV[5]
  if is_token() then
    state, expires = '\0', struct.unpack('>I8', head, 108)
  end
  local attempt, flags, asked, caller, secret =
    struct.unpack('>I4', head, 19), bit.band(head:byte(24), 7), head:sub(26, 58), head:sub(59, 75), head:sub(76, 79)
  if ARGV[7] == '1' then
    attempt = math.max(attempt, 1) - 1
    if attempt == 0 then
      -- Nobody has claimed the token yet; of anything else there was no record.
      flags, asked, caller, secret = 0, ('\0'):rep(33), ('\0'):rep(17), '\0\0\0\0'
      expires = is_token() and expires or now
    elseif flags >= 4 then
      -- The claim brought the caller.
      flags, caller = flags - 4, ('\0'):rep(17)
    end
  end
  if expires <= now then
    redis.call('DEL', name)
  else
    redis.call('SETRANGE', name, 0, '\2' .. state .. ARGV[2] .. struct.pack('>I4', attempt) .. '\0' .. string.char(flags)
      .. head:sub(25, 25) .. asked .. caller .. secret .. created() .. head:sub(88, 95) .. ARGV[4])
    redis.call('PEXPIREAT', name, string.format('%.0f', expires))
  end
  wake(ARGV[6])
  return 1
elseif has_ended('\3') or has_ended('\0') and ARGV[2] ~= ('\0'):rep(16) then
  -- A token that nobody has claimed has a claimant of zeros.
  return 2
end
return found()
