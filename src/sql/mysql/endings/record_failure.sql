INSERT INTO {table} (
    id, namespace, route, scope, record_key, version, state, attempt, claimant, fingerprint, caller, secret,
    origin_caller, origin_secret, caller_is_new, trace, at_most_once, takeover, created_ms, changed_ms, lease_ends_ms,
    expires_ms, payload
) VALUES (
    ?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, FALSE, FALSE,
    {now}, {now}, {now}, {now} + ?, ?
)
ON DUPLICATE KEY UPDATE
    claimant = IF(
        expires_ms <= {now} OR (version = 1 AND state = 'released' AND attempt < VALUES(attempt)),
        VALUES(claimant), claimant
    ),
    created_ms = IF(claimant = VALUES(claimant) AND expires_ms <= {now}, {now}, created_ms),
    version = IF(claimant = VALUES(claimant), VALUES(version), version),
    state = IF(claimant = VALUES(claimant), VALUES(state), state),
    attempt = IF(claimant = VALUES(claimant), VALUES(attempt), attempt),
    fingerprint = IF(claimant = VALUES(claimant), VALUES(fingerprint), fingerprint),
    caller = IF(claimant = VALUES(claimant), VALUES(caller), caller),
    secret = IF(claimant = VALUES(claimant), VALUES(secret), secret),
    origin_caller = IF(claimant = VALUES(claimant), VALUES(origin_caller), origin_caller),
    origin_secret = IF(claimant = VALUES(claimant), VALUES(origin_secret), origin_secret),
    caller_is_new = IF(claimant = VALUES(claimant), VALUES(caller_is_new), caller_is_new),
    trace = IF(claimant = VALUES(claimant), VALUES(trace), trace),
    at_most_once = IF(claimant = VALUES(claimant), FALSE, at_most_once),
    takeover = IF(claimant = VALUES(claimant), FALSE, takeover),
    changed_ms = IF(claimant = VALUES(claimant), VALUES(changed_ms), changed_ms),
    lease_ends_ms = IF(claimant = VALUES(claimant), VALUES(lease_ends_ms), lease_ends_ms),
    payload = IF(claimant = VALUES(claimant), VALUES(payload), payload),
    note = IF(claimant = VALUES(claimant), NULL, note),
    purpose = IF(claimant = VALUES(claimant), NULL, purpose),
    principal = IF(claimant = VALUES(claimant), NULL, principal),
    token_expires_ms = IF(claimant = VALUES(claimant), NULL, token_expires_ms),
    expires_ms = IF(claimant = VALUES(claimant), VALUES(expires_ms), expires_ms)
