SELECT {message} FROM {table} WHERE message_key = ? AND sent_ms IS NULL ORDER BY sent_ms, seq LIMIT 1
