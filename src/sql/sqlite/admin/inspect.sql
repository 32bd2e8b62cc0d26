SELECT {record}, note FROM {table} WHERE id = $1
