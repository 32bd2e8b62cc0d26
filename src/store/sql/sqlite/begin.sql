UPDATE {table}
SET state = 'running', attempt = 1, claimant = $1, fingerprint = $2, caller = $3, at_most_once = $4, takeover = FALSE,
    created_ms = {now}, changed_ms = {now}, lease_ends_ms = {now} + $5, expires_ms = {now} + $6,
    purpose = NULL, principal = NULL, token_expires_ms = NULL, payload = NULL, note = $7
WHERE id = $8 AND expires_ms <= {now}
