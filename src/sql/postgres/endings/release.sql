UPDATE {table}
SET state = CASE WHEN token_expires_ms IS NULL THEN 'released' ELSE 'issued' END, changed_ms = {now},
    expires_ms = COALESCE(token_expires_ms, {now} + $1)
WHERE id = $2 AND claimant = $3 AND version = 1 AND state = 'running' AND expires_ms > {now}
