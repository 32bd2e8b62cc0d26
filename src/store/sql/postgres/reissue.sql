UPDATE {table}
SET state = 'issued', attempt = 0, claimant = $1, fingerprint = $2, caller = $3, at_most_once = FALSE,
    takeover = FALSE, created_ms = {now}, changed_ms = {now}, lease_ends_ms = 0, expires_ms = {now} + $4,
    token_expires_ms = {now} + $5, purpose = $6, principal = $7, payload = NULL, note = NULL
WHERE id = $8 AND expires_ms <= {now}
