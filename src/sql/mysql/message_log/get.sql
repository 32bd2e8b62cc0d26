SELECT {logged} FROM {table} WHERE id = ?
