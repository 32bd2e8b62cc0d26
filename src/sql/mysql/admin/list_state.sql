SELECT {record}, note, id FROM {table}
WHERE id > ? AND id < ? AND state = ? AND expires_ms > {now}
ORDER BY id LIMIT ?
