SELECT {record}, note FROM {table} WHERE id = ?
