INSERT INTO {table} (
    id, namespace, route, scope, record_key, version, state, attempt, claimant, fingerprint, caller, secret,
    origin_caller, origin_secret, caller_is_new, trace, at_most_once, takeover, created_ms, changed_ms, lease_ends_ms,
    expires_ms, note
) VALUES (
    $1, $2, $3, $4, $5, 1, 'running', 1, $6, $7, $8, $9, $10, $11, $12, $13, $14, FALSE,
    {now}, {now}, {now} + $15, {now} + $16, $17
)
ON CONFLICT (id) DO NOTHING
