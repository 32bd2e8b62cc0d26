SELECT id FROM {table}
WHERE id > $1 AND id < $2 AND state IN ('issued', 'running', 'settled', 'released') AND expires_ms <= {now}
LIMIT $3
