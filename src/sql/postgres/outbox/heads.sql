WITH heads AS MATERIALIZED (
    SELECT seq AS head FROM {table} AS message
    WHERE sent_ms IS NULL AND due_ms <= {now} AND lease_ends_ms <= {now} AND strpos($1, chr(10) || topic || chr(10)) = 0 AND (
        message_key IS NULL OR NOT EXISTS (
            SELECT 1 FROM {table} AS earlier
            WHERE earlier.message_key = message.message_key AND earlier.sent_ms IS NULL AND earlier.seq < message.seq
        )
    )
    ORDER BY sent_ms, due_ms, seq LIMIT $2
    FOR UPDATE OF message SKIP LOCKED
)
UPDATE {table} SET relay = $3, lease_ends_ms = {now} + $4, attempts = attempts + 1
FROM heads WHERE seq = head
RETURNING {message}
