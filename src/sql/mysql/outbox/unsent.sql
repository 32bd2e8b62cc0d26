SELECT {message} FROM {table} WHERE sent_ms IS NULL AND created_ms <= {now} - ? AND seq > ? ORDER BY sent_ms, seq LIMIT ?
