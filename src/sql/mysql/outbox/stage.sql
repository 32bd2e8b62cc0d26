INSERT INTO {table} (id, topic, message_key, headers, payload, created_ms, attempts, due_ms, lease_ends_ms)
VALUES (?, ?, ?, ?, ?, {now}, 0, 0, 0)
