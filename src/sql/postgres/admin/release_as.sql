UPDATE {table}
SET state = CASE WHEN token_expires_ms IS NULL THEN 'released' ELSE 'issued' END, changed_ms = {now},
    expires_ms = COALESCE(token_expires_ms, {now} + $1), claimant = $2
WHERE id = $3 AND claimant = $4 AND version = 1 AND state = 'running' AND lease_ends_ms <= {now} AND expires_ms > {now}
