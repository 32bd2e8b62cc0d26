INSERT INTO {table} (
    id, namespace, route, scope, record_key, version, state, attempt, claimant, fingerprint, caller, secret,
    origin_caller, origin_secret, caller_is_new, trace, at_most_once, takeover, created_ms, changed_ms, lease_ends_ms,
    expires_ms, token_expires_ms, purpose, principal
) VALUES (
    $1, $2, $3, $4, $5, 1, 'issued', 0, $6, $7, $8, $9, $10, $11, $12, $13, FALSE, FALSE,
    {now}, {now}, 0, {now} + $14, {now} + $15, $16, $17
)
ON CONFLICT (id) DO NOTHING
