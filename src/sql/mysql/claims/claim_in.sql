/*M!100108 SET STATEMENT innodb_lock_wait_timeout = 0 FOR */ INSERT IGNORE INTO {table} (
    id, namespace, route, scope, record_key, version, state, attempt, claimant, fingerprint, caller, secret,
    origin_caller, origin_secret, caller_is_new, trace, at_most_once, takeover, created_ms, changed_ms, lease_ends_ms,
    expires_ms, note
) VALUES (
    ?, ?, ?, ?, ?, 1, 'running', 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, FALSE,
    {now}, {now}, {now} + ?, {now} + ?, ?
)
