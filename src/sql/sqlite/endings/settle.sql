UPDATE {table}
SET state = 'settled', payload = $1, changed_ms = {now}, expires_ms = {now} + $2
WHERE id = $3 AND claimant = $4 AND version = 1 AND state = 'running' AND expires_ms > {now}
