UPDATE {table} SET due_ms = CASE WHEN due_ms > {now} THEN {now} ELSE due_ms END
WHERE id = $1 AND sent_ms IS NULL AND lease_ends_ms <= {now}
