SELECT {logged} FROM {table} WHERE id = $1
