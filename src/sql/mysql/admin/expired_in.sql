SELECT id FROM {table}
WHERE id > ? AND id < ? AND state IN ('issued', 'running', 'settled', 'released') AND expires_ms <= {now}
LIMIT ?
