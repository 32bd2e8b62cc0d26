UPDATE {table}
SET version = 1, state = 'issued', attempt = 0, claimant = $1, fingerprint = $2, caller = $3, secret = $4,
    origin_caller = $5, origin_secret = $6, caller_is_new = $7, trace = $8,
    at_most_once = FALSE, takeover = FALSE, created_ms = {now}, changed_ms = {now}, lease_ends_ms = 0,
    expires_ms = {now} + $9, token_expires_ms = {now} + $10, purpose = $11, principal = $12, payload = NULL, note = NULL
WHERE id = $13 AND expires_ms <= {now}
