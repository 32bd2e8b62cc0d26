UPDATE {table}
SET state = 'settled', payload = $1, changed_ms = {now}, expires_ms = {now} + $2, claimant = $3
WHERE id = $4 AND claimant = $5 AND version = 1 AND state = 'running' AND lease_ends_ms <= {now} AND expires_ms > {now}
