UPDATE {table}
SET version = 1, state = 'issued', attempt = 0, claimant = ?, fingerprint = ?, caller = ?, secret = ?,
    origin_caller = ?, origin_secret = ?, caller_is_new = ?, trace = ?,
    at_most_once = FALSE, takeover = FALSE, created_ms = {now}, changed_ms = {now}, lease_ends_ms = 0,
    expires_ms = {now} + ?, token_expires_ms = {now} + ?, purpose = ?, principal = ?, payload = NULL, note = NULL
WHERE id = ? AND expires_ms <= {now}
