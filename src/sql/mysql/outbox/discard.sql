DELETE FROM {table} WHERE id = ? AND sent_ms IS NULL AND lease_ends_ms <= {now}
