UPDATE {table}
SET changed_ms = {now}, lease_ends_ms = {now} + ?, expires_ms = {now} + ?
WHERE id = ? AND claimant = ? AND version = 1 AND state = 'running' AND expires_ms > {now}
