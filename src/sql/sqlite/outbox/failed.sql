UPDATE {table} SET due_ms = {now} + $1, lease_ends_ms = 0 WHERE seq = $2 AND relay = $3 AND sent_ms IS NULL
