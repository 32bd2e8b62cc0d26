DELETE FROM {table} WHERE id = $1 AND sent_ms IS NULL AND lease_ends_ms <= {now}
