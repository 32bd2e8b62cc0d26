SELECT {message} FROM {table} WHERE message_key = $1 AND sent_ms IS NULL ORDER BY sent_ms, seq LIMIT 1
