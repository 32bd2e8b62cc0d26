SELECT {record}, note, id FROM {table}
WHERE id > $1 AND id < $2 AND state = $3 AND expires_ms > {now}
ORDER BY id LIMIT $4
