SELECT claimant FROM {table} WHERE id = ? AND state = 'running' AND expires_ms > {now}
