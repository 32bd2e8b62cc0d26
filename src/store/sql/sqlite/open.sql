INSERT INTO {table} (
    id, namespace, route, scope, record_key, state, attempt, claimant, fingerprint, caller, at_most_once, takeover,
    created_ms, changed_ms, lease_ends_ms, expires_ms, note
) VALUES (
    $1, $2, $3, $4, $5, 'running', 1, $6, $7, $8, $9, FALSE,
    {now}, {now}, {now} + $10, {now} + $11, $12
)
ON CONFLICT (id) DO NOTHING
