UPDATE {table} SET due_ms = {now} + ?, lease_ends_ms = 0 WHERE seq = ? AND relay = ? AND sent_ms IS NULL
