SELECT {record}, note, id FROM {table}
WHERE id > $1 AND id < $2 AND state = 'running' AND lease_ends_ms <= {now} AND expires_ms > {now}
ORDER BY id LIMIT $3
