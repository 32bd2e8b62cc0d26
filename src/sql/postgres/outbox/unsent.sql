SELECT {message} FROM {table} WHERE sent_ms IS NULL AND created_ms <= {now} - $1 AND seq > $2 ORDER BY sent_ms, seq LIMIT $3
