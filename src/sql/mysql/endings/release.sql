UPDATE {table}
SET state = CASE WHEN token_expires_ms IS NULL THEN 'released' ELSE 'issued' END, changed_ms = {now},
    expires_ms = COALESCE(token_expires_ms, {now} + ?)
WHERE id = ? AND claimant = ? AND version = 1 AND state = 'running' AND expires_ms > {now}
