INSERT INTO {table} (
    id, namespace, route, scope, record_key, state, attempt, claimant, fingerprint, caller, at_most_once, takeover,
    created_ms, changed_ms, lease_ends_ms, expires_ms, token_expires_ms, purpose, principal
) VALUES (
    $1, $2, $3, $4, $5, 'issued', 0, $6, $7, $8, FALSE, FALSE,
    {now}, {now}, 0, {now} + $9, {now} + $10, $11, $12
)
ON CONFLICT (id) DO NOTHING
