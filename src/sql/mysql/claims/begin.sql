UPDATE {table}
SET version = 1, state = 'running', attempt = 1, claimant = ?, fingerprint = ?, caller = ?, secret = ?,
    origin_caller = ?, origin_secret = ?, caller_is_new = ?, trace = ?,
    at_most_once = ?, takeover = FALSE, created_ms = {now}, changed_ms = {now}, lease_ends_ms = {now} + ?,
    expires_ms = {now} + ?, purpose = NULL, principal = NULL, token_expires_ms = NULL, payload = NULL, note = ?
WHERE id = ? AND expires_ms <= {now}
