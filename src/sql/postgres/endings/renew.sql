UPDATE {table}
SET changed_ms = {now}, lease_ends_ms = {now} + $1, expires_ms = {now} + $2
WHERE id = $3 AND claimant = $4 AND version = 1 AND state = 'running' AND expires_ms > {now}
