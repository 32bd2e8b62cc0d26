SELECT claimant FROM {table} WHERE id = $1 AND state = 'running' AND expires_ms > {now}
