SELECT {record}, note, id FROM {table} USE INDEX ({index})
WHERE id > ? AND id < ? AND state = 'running' AND lease_ends_ms <= {now} AND expires_ms > {now}
ORDER BY id LIMIT ?
