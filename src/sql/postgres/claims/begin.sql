UPDATE {table}
SET version = 1, state = 'running', attempt = 1, claimant = $1, fingerprint = $2, caller = $3, secret = $4,
    origin_caller = $5, origin_secret = $6, caller_is_new = $7, trace = $8,
    at_most_once = $9, takeover = FALSE, created_ms = {now}, changed_ms = {now}, lease_ends_ms = {now} + $10,
    expires_ms = {now} + $11, purpose = NULL, principal = NULL, token_expires_ms = NULL, payload = NULL, note = $12
WHERE id = $13 AND expires_ms <= {now}
