SELECT id FROM {table}
WHERE state IN ('issued', 'running', 'settled', 'released') AND expires_ms <= {now}
LIMIT $1
