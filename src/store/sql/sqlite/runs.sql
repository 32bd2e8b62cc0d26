SELECT 1 FROM {table} WHERE id = $1 AND claimant = $2 AND state = 'running' AND expires_ms > {now}
