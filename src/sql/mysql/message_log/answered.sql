UPDATE {table} SET status = ?, answered_ms = {now} WHERE id = ? AND status IS NULL
