UPDATE {table} SET status = $1, answered_ms = {now} WHERE id = $2 AND status IS NULL
