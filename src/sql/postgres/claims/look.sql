SELECT {record}, NULL FROM {table} WHERE id = $1
