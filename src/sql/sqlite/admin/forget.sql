DELETE FROM {table} WHERE id = $1 AND expires_ms > {now}
