UPDATE {table}
SET state = CASE WHEN token_expires_ms IS NULL THEN 'released' ELSE 'issued' END, changed_ms = {now},
    expires_ms = COALESCE(token_expires_ms, {now} + $1),
    caller = CASE WHEN caller_is_new THEN $2 ELSE caller END, caller_is_new = FALSE,
    origin_caller = CASE WHEN attempt = 1 THEN $3 ELSE origin_caller END,
    origin_secret = CASE WHEN attempt = 1 THEN 0 ELSE origin_secret END,
    attempt = attempt - 1, claimant = $4
WHERE id = $5 AND claimant = $6 AND version = 1 AND state = 'running'
    AND ($7 OR lease_ends_ms <= {now}) AND expires_ms > {now}
