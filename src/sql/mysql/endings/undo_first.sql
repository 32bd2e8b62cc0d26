DELETE FROM {table}
WHERE id = ? AND claimant = ? AND version = 1 AND state = 'running' AND attempt = 1 AND token_expires_ms IS NULL
    AND (? OR lease_ends_ms <= {now}) AND expires_ms > {now}
