INSERT INTO {table} (id, topic, message_key, headers, payload, created_ms, attempts, due_ms, lease_ends_ms)
VALUES ($1, $2, $3, $4, $5, {now}, 0, 0, 0)
