UPDATE {table} SET relay = $1, lease_ends_ms = {now} + $2, attempts = attempts + 1
WHERE seq = $3 AND sent_ms IS NULL AND attempts = $4 AND due_ms <= {now} AND lease_ends_ms <= {now}
