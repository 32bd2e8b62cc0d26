UPDATE {table} SET sent_ms = {now}, lease_ends_ms = 0 WHERE seq = ? AND relay = ?
