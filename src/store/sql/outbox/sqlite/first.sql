SELECT {message} FROM {table} WHERE message_key = $1 AND sent_ms IS NULL ORDER BY seq LIMIT 1
