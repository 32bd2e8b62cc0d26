UPDATE {table}
SET state = 'settled', payload = ?, changed_ms = {now}, expires_ms = {now} + ?, claimant = ?
WHERE id = ? AND claimant = ? AND version = 1 AND state = 'running' AND lease_ends_ms <= {now} AND expires_ms > {now}
