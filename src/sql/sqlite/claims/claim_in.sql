INSERT INTO {table} AS record (
    id, namespace, route, scope, record_key, version, state, attempt, claimant, fingerprint, caller, secret,
    origin_caller, origin_secret, caller_is_new, trace, at_most_once, takeover, created_ms, changed_ms, lease_ends_ms,
    expires_ms, note
) VALUES (
    $1, $2, $3, $4, $5, 1, 'running', 1, $6, $7, $8, $9, $10, $11, $12, $13, $14, FALSE,
    {now}, {now}, {now} + $15, {now} + $16, $17
)
ON CONFLICT (id) DO UPDATE
SET version = 1, state = 'running', attempt = 1, claimant = excluded.claimant, fingerprint = excluded.fingerprint,
    caller = excluded.caller, secret = excluded.secret, origin_caller = excluded.origin_caller,
    origin_secret = excluded.origin_secret, caller_is_new = excluded.caller_is_new, trace = excluded.trace,
    at_most_once = excluded.at_most_once, takeover = FALSE, created_ms = excluded.created_ms,
    changed_ms = excluded.changed_ms, lease_ends_ms = excluded.lease_ends_ms, expires_ms = excluded.expires_ms,
    purpose = NULL, principal = NULL, token_expires_ms = NULL, payload = NULL, note = excluded.note
WHERE record.expires_ms <= {now}
