UPDATE {table}
SET state = 'running', attempt = ?, claimant = ?, fingerprint = ?, caller = ?, secret = ?,
    origin_caller = ?, origin_secret = ?, caller_is_new = ?, trace = ?,
    at_most_once = ?, takeover = ?, changed_ms = {now}, lease_ends_ms = {now} + ?, expires_ms = {now} + ?,
    payload = NULL, note = ?
WHERE id = ? AND version = 1 AND state = ? AND claimant = ? AND attempt = ?
    AND lease_ends_ms = ? AND expires_ms = ?
