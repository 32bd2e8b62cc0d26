SELECT seq FROM {table} WHERE sent_ms <= {now} - $1 ORDER BY sent_ms LIMIT $2
