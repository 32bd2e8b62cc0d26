INSERT INTO {table} (id, route, key_digest, method, path, headers, body, is_cut, arrived_ms)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, {now})
ON DUPLICATE KEY UPDATE id = id
