SELECT COUNT(*), COUNT(CASE WHEN due_ms > 0 THEN 1 END), {now} - MIN(created_ms) FROM {table} WHERE sent_ms IS NULL
