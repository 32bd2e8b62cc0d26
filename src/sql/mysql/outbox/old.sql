SELECT seq FROM {table} WHERE sent_ms <= {now} - ? ORDER BY sent_ms LIMIT ?
