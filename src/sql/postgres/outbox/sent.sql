UPDATE {table} SET sent_ms = {now}, lease_ends_ms = 0 WHERE seq = $1 AND relay = $2
