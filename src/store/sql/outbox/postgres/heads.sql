WITH heads AS MATERIALIZED (
    SELECT seq AS head FROM {table} AS message
    WHERE sent_ms IS NULL AND due_ms <= {now} AND lease_ends_ms <= {now} AND (
        message_key IS NULL OR NOT EXISTS (
            SELECT 1 FROM {table} AS earlier
            WHERE earlier.message_key = message.message_key AND earlier.sent_ms IS NULL AND earlier.seq < message.seq
        )
    )
    ORDER BY sent_ms, seq LIMIT $1
    FOR UPDATE OF message SKIP LOCKED
)
UPDATE {table} SET relay = $2, lease_ends_ms = {now} + $3, attempts = attempts + 1
FROM heads WHERE seq = head
RETURNING {message}
