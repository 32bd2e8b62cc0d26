DELETE FROM {table} WHERE id = ? AND expires_ms > {now}
