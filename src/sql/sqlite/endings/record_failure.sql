INSERT INTO {table} AS record (
    id, namespace, route, scope, record_key, version, state, attempt, claimant, fingerprint, caller, secret,
    origin_caller, origin_secret, caller_is_new, trace, at_most_once, takeover, created_ms, changed_ms, lease_ends_ms,
    expires_ms, payload
) VALUES (
    $1, $2, $3, $4, $5, 1, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, FALSE, FALSE,
    {now}, {now}, {now}, {now} + $16, $17
)
ON CONFLICT (id) DO UPDATE
SET created_ms = CASE WHEN record.expires_ms <= {now} THEN {now} ELSE record.created_ms END, changed_ms = {now},
    version = 1, state = excluded.state, attempt = excluded.attempt, claimant = excluded.claimant,
    fingerprint = excluded.fingerprint, caller = excluded.caller, secret = excluded.secret,
    origin_caller = excluded.origin_caller, origin_secret = excluded.origin_secret,
    caller_is_new = excluded.caller_is_new, trace = excluded.trace, at_most_once = FALSE, takeover = FALSE,
    lease_ends_ms = {now}, expires_ms = excluded.expires_ms, purpose = NULL, principal = NULL, token_expires_ms = NULL,
    payload = excluded.payload, note = NULL
WHERE record.expires_ms <= {now}
    OR (record.version = 1 AND record.state = 'released' AND record.attempt < excluded.attempt)
