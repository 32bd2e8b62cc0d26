SELECT {message} FROM {table} WHERE message_key = ? AND sent_ms IS NULL ORDER BY seq LIMIT 1
