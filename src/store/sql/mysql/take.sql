UPDATE {table}
SET state = 'running', attempt = ?, claimant = ?, fingerprint = ?, caller = ?, at_most_once = ?, takeover = ?,
    changed_ms = {now}, lease_ends_ms = {now} + ?, expires_ms = {now} + ?, payload = NULL, note = ?
WHERE id = ? AND state = ? AND claimant = ? AND attempt = ? AND lease_ends_ms = ? AND expires_ms = ?
