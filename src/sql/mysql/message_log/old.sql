SELECT seq FROM {table} WHERE arrived_ms <= {now} - ? ORDER BY arrived_ms LIMIT ?
