UPDATE {table} SET relay = ?, lease_ends_ms = {now} + ?, attempts = attempts + 1
WHERE seq = ? AND sent_ms IS NULL AND attempts = ? AND due_ms <= {now} AND lease_ends_ms <= {now}
