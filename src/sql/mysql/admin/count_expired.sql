SELECT COUNT(CASE WHEN id > ? AND id < ? THEN 1 END), COUNT(*) FROM {table}
WHERE state IN ('issued', 'running', 'settled', 'released') AND expires_ms <= {now}
