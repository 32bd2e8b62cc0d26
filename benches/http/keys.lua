-- Requests with a key each. Arguments: what the keys begin with, and how many there are, 0 for new ones without end.
local begin, most, number

function init(arguments)
  begin, most, number = arguments[1], tonumber(arguments[2]), 0
  head = 'POST /orders HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 31\r\n'
    .. 'Idempotency-Key: ' .. begin
  body = '\r\n\r\n{"amount":100,"currency":"eur"}'
end

function request()
  number = number + 1
  local key = most > 0 and number % most or number
  return head .. string.format('%020d', key) .. body
end
