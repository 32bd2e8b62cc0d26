UPDATE {table}
SET state = 'running', attempt = $1, claimant = $2, fingerprint = $3, caller = $4, secret = $5,
    origin_caller = $6, origin_secret = $7, caller_is_new = $8, trace = $9,
    at_most_once = $10, takeover = $11, changed_ms = {now}, lease_ends_ms = {now} + $12, expires_ms = {now} + $13,
    payload = NULL, note = $14
WHERE id = $15 AND version = 1 AND state = $16 AND claimant = $17 AND attempt = $18
    AND lease_ends_ms = $19 AND expires_ms = $20
