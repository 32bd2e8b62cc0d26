SELECT COUNT(CASE WHEN id > $1 AND id < $2 THEN 1 END), COUNT(*) FROM {table}
WHERE state IN ('issued', 'running', 'settled', 'released') AND expires_ms <= {now}
