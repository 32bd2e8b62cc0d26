/*M!100108 SET STATEMENT innodb_lock_wait_timeout = 0 FOR */ INSERT IGNORE INTO {table} (
    id, namespace, route, scope, record_key, state, attempt, claimant, fingerprint, caller, at_most_once, takeover,
    created_ms, changed_ms, lease_ends_ms, expires_ms, note
) VALUES (
    ?, ?, ?, ?, ?, 'running', 1, ?, ?, ?, ?, FALSE,
    {now}, {now}, {now} + ?, {now} + ?, ?
)
