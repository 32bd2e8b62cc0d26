INSERT IGNORE INTO {table} (
    id, namespace, route, scope, record_key, version, state, attempt, claimant, fingerprint, caller, secret,
    origin_caller, origin_secret, caller_is_new, trace, at_most_once, takeover, created_ms, changed_ms, lease_ends_ms,
    expires_ms, token_expires_ms, purpose, principal
) VALUES (
    ?, ?, ?, ?, ?, 1, 'issued', 0, ?, ?, ?, ?, ?, ?, ?, ?, FALSE, FALSE,
    {now}, {now}, 0, {now} + ?, {now} + ?, ?, ?
)
