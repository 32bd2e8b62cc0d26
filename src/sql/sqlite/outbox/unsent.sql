SELECT {message} FROM {table} WHERE sent_ms IS NULL AND created_ms <= {now} - $1 ORDER BY sent_ms, seq LIMIT $2
