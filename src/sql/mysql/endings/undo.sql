UPDATE {table}
SET state = CASE WHEN token_expires_ms IS NULL THEN 'released' ELSE 'issued' END, changed_ms = {now},
    expires_ms = COALESCE(token_expires_ms, {now} + ?),
    caller = CASE WHEN caller_is_new THEN ? ELSE caller END, caller_is_new = FALSE,
    origin_caller = CASE WHEN attempt = 1 THEN ? ELSE origin_caller END,
    origin_secret = CASE WHEN attempt = 1 THEN 0 ELSE origin_secret END,
    attempt = attempt - 1, claimant = ?
WHERE id = ? AND claimant = ? AND version = 1 AND state = 'running'
    AND (? OR lease_ends_ms <= {now}) AND expires_ms > {now}
