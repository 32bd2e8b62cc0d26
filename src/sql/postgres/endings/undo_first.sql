DELETE FROM {table}
WHERE id = $1 AND claimant = $2 AND version = 1 AND state = 'running' AND attempt = 1 AND token_expires_ms IS NULL
    AND ($3 OR lease_ends_ms <= {now}) AND expires_ms > {now}
