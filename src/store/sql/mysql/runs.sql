SELECT 1 FROM {table} WHERE id = ? AND claimant = ? AND state = 'running' AND expires_ms > {now}
