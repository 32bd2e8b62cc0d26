INSERT IGNORE INTO {table} (
    id, namespace, route, scope, record_key, state, attempt, claimant, fingerprint, caller, at_most_once, takeover,
    created_ms, changed_ms, lease_ends_ms, expires_ms, token_expires_ms, purpose, principal
) VALUES (
    ?, ?, ?, ?, ?, 'issued', 0, ?, ?, ?, FALSE, FALSE,
    {now}, {now}, 0, {now} + ?, {now} + ?, ?, ?
)
