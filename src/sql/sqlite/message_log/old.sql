SELECT seq FROM {table} WHERE arrived_ms <= {now} - $1 ORDER BY arrived_ms LIMIT $2
