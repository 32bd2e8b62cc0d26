UPDATE {table}
SET state = 'running', attempt = $1, claimant = $2, fingerprint = $3, caller = $4, at_most_once = $5, takeover = $6,
    changed_ms = {now}, lease_ends_ms = {now} + $7, expires_ms = {now} + $8, payload = NULL, note = $9
WHERE id = $10 AND state = $11 AND claimant = $12 AND attempt = $13 AND lease_ends_ms = $14 AND expires_ms = $15
