DELETE FROM {table} WHERE id IN ({batch}) AND expires_ms <= {now}
