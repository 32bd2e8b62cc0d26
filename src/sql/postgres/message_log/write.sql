INSERT INTO {table} (id, route, key_digest, method, path, headers, body, is_cut, arrived_ms)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, {now})
ON CONFLICT (id) DO NOTHING
