SELECT {message} FROM {table} AS message
WHERE sent_ms IS NULL AND due_ms <= {now} AND lease_ends_ms <= {now} AND instr($1, char(10) || topic || char(10)) = 0 AND (
    message_key IS NULL OR NOT EXISTS (
        SELECT 1 FROM {table} AS earlier
        WHERE earlier.message_key = message.message_key AND earlier.sent_ms IS NULL AND earlier.seq < message.seq
    )
)
ORDER BY sent_ms, due_ms, seq LIMIT $2
